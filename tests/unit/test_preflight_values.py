"""Usual ranges of fields and presets, and learning rates that are computed to their end."""

import gzip
import itertools
import json
import math
from pathlib import Path
from typing import Any

import pytest
from quoted import quoted
from tables import tabled

from launcher.check import checks
from launcher.check.checks import refusals, report
from launcher.check.config.plausible import RULES, unusual
from launcher.check.config.trainer import schedules
from launcher.check.finding import Finding
from launcher.check.subject import subject
from launcher.check.suggestion import suggested_value
from launcher.cli.completion import complete
from launcher.core.errors import UserError
from launcher.health.config import RunConfig
from launcher.preset.choices import new_keys
from launcher.preset.draft import Draft
from launcher.preset.effective import EffectiveConfig, Setting, of_draft
from launcher.preset.files import load, restore, shipped
from launcher.preset.layers import declarable
from launcher.preset.schedule import Schedule
from launcher.preset.schema import BY_KEY, FIELDS
from launcher.verl import versions
from launcher.verl.usual import BY_VERL_KEY, RANGES, WITHOUT, beyond

EXAMPLES = Path(__file__).parents[1] / "data" / "verl_examples.json.gz"
LR = "actor_rollout_ref.actor.optim.lr"


def found(preset: str, *settings: str) -> list[Finding]:
    what = subject(load(preset, settings), assume="1x80")
    return [each for each in checks.quick(what) if each.id.startswith("VALUE")]


def test_every_field_with_a_number_has_a_usual_range_or_a_reason():
    ranged = {BY_KEY[key].name for key in BY_VERL_KEY}
    assert {*declarable()} - ranged - WITHOUT.keys() == set()
    assert not ranged & WITHOUT.keys() and WITHOUT.keys() <= FIELDS.keys()
    assert all(each.source for each in RANGES)
    assert all(each.low <= each.usual[0] <= each.usual[1] <= each.high or each.usual[0] in each.off for each in RANGES)


def test_veRL_s_examples_are_usual():
    """But for a debugging script with three prompts per step, and KL terms that two scripts ask for and weigh by 0."""
    strange = []
    for path, keys in json.loads(gzip.decompress(EXAMPLES.read_bytes()))["examples"].items():
        named = {versions.newest(key): Setting(value, "override") for key, value in keys.items()}
        config = EffectiveConfig(settings=named)
        strange += [(Path(path).name, each.id) for rule in RULES for each in rule(config)]
    assert strange == [
        ("run_hy_v3_megatron.sh", "VALUE-2"),
        ("run_mimo_7b_mtp_rl_vllm_sgl_megatron.sh", "VALUE-2"),
        ("run_qwen3_30b_a3b_megatron.sh", "VALUE-13"),
    ]


@pytest.mark.parametrize(
    "key, value, keys, usual, expected",
    [
        (LR, 0.3, {}, {}, 0.3 / 5e-6),
        (LR, 0.3, {}, {LR: (1e-6, 1e-3)}, 0.3 / 1e-3),
        (LR, 3e-4, {"actor_rollout_ref.model.lora_rank": 16}, {}, 3.0),
        (LR, 1e-6, {}, {}, 1.0),
        (LR, 1e-12, {}, {}, 1e-5),
        ("actor_rollout_ref.actor.optim.weight_decay", 10, {}, {}, 100.0),
        ("actor_rollout_ref.actor.entropy_coeff", -20.0, {}, {}, -math.inf),
        ("actor_rollout_ref.rollout.top_k", -1, {}, {}, 1.0),
        ("critic.optim.lr", 1.0, {"algorithm.adv_estimator": "grpo"}, {}, None),
        ("data.max_response_length", 256, {}, {}, None),
    ],
)
def test_how_far_a_value_is_beyond_the_usual_ones(key, value, keys, usual, expected):
    """By the keys of a log as by a preset."""
    settings = {name: Setting(each, "override") for name, each in keys.items()}
    for config in (RunConfig(keys, usual=usual), EffectiveConfig(settings=settings, usual=usual)):
        assert beyond(key, value, config) == (None if expected is None else pytest.approx(expected))


def test_a_preset_declares_the_range_of_its_own_model(tmp_path: Path):
    """Both spellings are one, the file on top wins, null takes a range back, and a run keeps it."""
    base, mine = tmp_path / "base.yaml", tmp_path / "mine.yaml"
    base.write_text("extends: toy-cpu\nusual:\n  actor: {lr: [1e-6, 1e-2]}\n")
    assert found(str(base), "actor.lr=5e-3") == []
    mine.write_text(f"extends: ./base.yaml\nusual:\n  {LR}: [1e-4, 1e-3]\n")
    (outside,) = found(str(mine), "actor.lr=5e-3")
    assert quoted(outside.message) == ["0.005", "1e-4", "0.001"] and outside.change == {"actor.lr": 0.001}
    kept = restore("run", load(str(mine), ["actor.lr=5e-3"]).snapshot())
    (outside,) = unusual(of_draft(kept.layer))
    assert quoted(outside.now) == ["0.005", "1e-4", "0.001"]
    (taken,) = found(str(mine), "usual.actor.lr=null")
    assert "0.001" not in quoted(taken.message)  # the toy's 3e-4


@tabled
def test_a_range_that_cannot_be_is_refused(setting: str, message: str, hint: str | None, tmp_path: Path):
    with pytest.raises(UserError) as refused:
        load("toy-cpu", [setting])
    assert refused.value.message == message and (hint is None or refused.value.hint == hint)
    file = tmp_path / "mine.yaml"
    name, _, value = setting.removeprefix("usual.").partition("=")
    file.write_text(f"extends: toy-cpu\nusual:\n  {name}: {value}\n")
    with pytest.raises(UserError, match=r"mine\.yaml, line 3"):
        load(str(file))
    draft = Draft(file, file.read_text(), on_disk=None)
    assert ("usual", name) in draft.reading.errors


def test_an_editor_sets_a_range(tmp_path: Path):
    file = tmp_path / "mine.yaml"
    draft = Draft(file, "extends: toy-cpu\n", on_disk=None)
    where = draft.add("usual.actor_rollout_ref.actor.optim.lr", [1e-5, 1e-2])
    assert where == ("usual", "actor.lr") and draft.text == "extends: toy-cpu\nusual:\n  actor.lr: [1e-5, 0.01]\n"
    assert new_keys("usual.critic.clip") == ["usual.critic.clip_grad", "usual.critic.cliprange_value"]
    assert dict(complete(["check", "toy-cpu", "usual.critic.clip"])).keys() == {
        "usual.critic.clip_grad=",
        "usual.critic.cliprange_value=",
    }
    assert draft.check_text(where, "3") and not draft.check_text(where, "[1, 2]")


def test_rates_are_those_of_verl():
    functional = pytest.importorskip("verl.utils.torch_functional")
    import torch

    for warmup, least, cycles in itertools.product((0, 5, 100), (0.0, 0.1), (0.5, 1.0)):
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1e-3)
        theirs = functional.get_cosine_schedule_with_warmup(optimizer, warmup, 60, least, cycles)
        ours = Schedule(1e-3, 60, warmup, True, 60, least, cycles, 0)
        for rate in ours.rates:
            assert rate == pytest.approx(optimizer.param_groups[0]["lr"], abs=1e-12)
            optimizer.step()
            theirs.step()


@pytest.mark.parametrize("preset", shipped())
def test_a_check_of_any_number_of_steps_takes_as_long(preset: str, monkeypatch: pytest.MonkeyPatch):
    """A loop over 1e20 steps would not end."""
    real, asked = Schedule.rate, []
    monkeypatch.setattr(Schedule, "rate", lambda self, step: (asked.append(step), real(self, step))[1])
    settings = ["trainer.epochs=1000000000", "actor.lr_scheduler_type=cosine", "actor.lr_warmup_steps=100"]
    counts = set()
    for steps in ("1e4", "1e8", "1e20"):
        asked.clear()
        list(schedules(subject(load(preset, [f"trainer.steps={steps}", *settings]), assume="1x80")))
        counts.add(len(asked))
        assert max(asked) >= int(float(steps)) - 1
    assert len(counts) == 1


def test_the_rates_of_a_long_run_have_its_first_and_last_step():
    long = Schedule(1.0, 10**9, 10**8, False, 10**9, 0.0, 0.5, 0)
    rates = list(long.rates)
    assert rates[0] == 0.0 and rates[-1] == 1.0 == long.rate(10**9 - 1) and len(rates) == 1_000
    assert sum(rate < 1.0 for rate in rates) / len(rates) == pytest.approx(0.1, abs=2e-3)


def test_rows_give_the_steps_where_the_preset_does_not():
    what = subject(load("gsm8k-0.5b-24gb", ["trainer.epochs=1", "actor.lr_warmup_steps=100"]), assume="1x80")
    assert not [each for each in checks.quick(what) if each.id == "VALUE-12"]
    (one,) = schedules(what, rows=7473)
    assert "is 100, and its schedule has 58 steps" in one.message


@tabled
def test_the_nearest_allowed_value(name: str, value: Any, wanted: Any) -> None:
    found = suggested_value(FIELDS[name], value)
    assert found == wanted and type(found) is type(wanted)


@tabled
def test_the_value_that_applies_without_a_wrong_one_is_offered(text: str, says: str, tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text(text)
    (found,) = report(str(mine)).findings
    assert says in found.fix
    (found,) = refusals(Draft(mine, text, on_disk=None), UserError("refused"))
    assert says in found.fix + found.message


def test_the_value_of_the_preset_is_offered_under_the_name_that_was_typed() -> None:
    (found,) = report("toy-cpu", ["actor_rollout_ref.actor.optim.lr=5"], static=True).findings
    assert found.message.split()[:3] == ["actor_rollout_ref.actor.optim.lr", "is", "5,"]
    assert found.fix.startswith("set actor_rollout_ref.actor.optim.lr to 0.0003")
