"""Fixes as changes of a preset: the records of the catalog."""

import pytest

from launcher.console.causes import Cause, catalogue
from launcher.console.fix import Fix, fix_of
from launcher.preset.field_values import where_of
from launcher.preset.files import load, restore
from launcher.preset.remedy import Remedy, configuration, open_fixes, remedy
from launcher.preset.schema import FIELDS
from launcher.verl import defaults

PRESET = load("gsm8k-0.5b-24gb").snapshot()
FIXES = {fix.text: fix for cause in catalogue() for fix in cause.fixes}
ACTOR, ROLLOUT = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"


@pytest.mark.parametrize(
    ("fix", "field", "settings"),
    [
        ({"set": {f"{ROLLOUT}.enforce_eager": "True"}}, f"{ROLLOUT}.enforce_eager", [f"{ROLLOUT}.enforce_eager=True"]),
        ({"lower": {f"{ROLLOUT}.max_num_seqs": "64"}}, f"{ROLLOUT}.max_num_seqs", [f"{ROLLOUT}.max_num_seqs=64"]),
        ({"lower": {f"{ROLLOUT}.gpu_memory_utilization": []}}, f"{ROLLOUT}.gpu_memory_utilization", []),
        (
            {"set": {f"{ACTOR}.fsdp_config.param_offload": "True", f"{ACTOR}.fsdp_config.optimizer_offload": "True"}},
            f"{ACTOR}.fsdp_config.param_offload",
            [f"{ACTOR}.fsdp_config.param_offload=True", f"{ACTOR}.fsdp_config.optimizer_offload=True"],
        ),
        ({"set": {"algorithm.kl_penalty": ["kl", "abs"]}}, "algorithm.kl_penalty", ["algorithm.kl_penalty=kl"]),
        ({"set": {"trainer.logger": "[console,file]"}}, "trainer.logger", ["trainer.logger=[console,file]"]),
        ({"choose": {"data.train_files": "existing files"}}, "data.train_files", []),
        ({"remove": [f"{ROLLOUT}.mode"]}, f"{ROLLOUT}.mode", []),
        (
            {"set": {"env.WANDB_MODE": "offline"}, "why": ", which skips it"},
            "env.WANDB_MODE",
            ["env.WANDB_MODE=offline"],
        ),
        ({"choose": {"env.RAY_TMPDIR": "a short path"}}, "env.RAY_TMPDIR", []),
        ({"set": {"+trainer.mine": "..."}, "why": "only if veRL reads it"}, "+trainer.mine", []),
    ],
)
def test_a_fix_names_a_field_and_values(fix: dict[str, object], field: str, settings: list[str]) -> None:
    found = remedy(fix_of(fix), configuration(PRESET))
    assert found is not None and (found.field, list(found.settings)) == (field, settings)


@pytest.mark.parametrize(
    "fix",
    [
        "do not set `trainer.v1.sampler.sync_refill_failed_groups=True`: the run never ends",
        {"or": True, "set": {"trainer.resume_mode": "auto"}},  # ppo-tui's own
    ],
)
def test_other_fixes_change_no_preset(fix: str | dict[str, object]) -> None:
    assert remedy(fix_of(fix), configuration(PRESET)) is None


def test_of_examples_the_first_counts_that_leads_on() -> None:
    key = f"{ACTOR}.ppo_micro_batch_size_per_gpu"
    for now, settings in ((64, (f"{key}=8",)), (8, (f"{key}=1",)), (1, ())):
        config = configuration({"actor": {"ppo_micro_batch_size_per_gpu": now}})
        assert remedy(fix_of({"lower": {key: ["8", "1"]}}), config) == Remedy(key, settings)


def test_only_what_is_left_to_do_is_advised() -> None:
    config = configuration({"actor": {"strategy": "fsdp2"}, "rollout": {"agent_workers": 1}})
    workers = {f"{ROLLOUT}.agent.num_workers": "2", "data.dataloader_num_workers": []}
    fixes = [
        fix_of({"set": {f"{ACTOR}.strategy": "fsdp2"}}),
        fix_of({"or": True, "set": {f"{ACTOR}.strategy": "fsdp"}}),
        fix_of({"lower": workers}),
        fix_of({"do": "keep fewer", "set": {f"{ACTOR}.strategy": "fsdp2"}, "raise": {"trainer.save_freq": []}}),
        fix_of("run `dmesg`"),
    ]
    left = [fix.text for fix in open_fixes(fixes, config)]
    assert left == [
        f"set {ACTOR}.strategy=fsdp",
        "data.dataloader_num_workers ↓",  # veRL's default is 8
        "keep fewer: trainer.save_freq ↑",
        "run `dmesg`",
    ]
    assert configuration({"actor": {"no_such_field": 1}}).settings == {}  # of another ppo-tui


@pytest.mark.parametrize("preset", ["toy-cpu", "gsm8k-0.5b-24gb", "math-7b-8gpu"])
@pytest.mark.parametrize("cause", catalogue(), ids=lambda cause: cause.id)
def test_no_run_is_advised_what_it_has(cause: Cause, preset: str) -> None:
    config = configuration(load(preset).snapshot())
    for fix in open_fixes(cause.fixes, config):
        for change in fix.changes:
            if change.operation == "lower" and "{" not in change.key:
                found = remedy(Fix(changes=(change,)), config)
                now = config.get(FIELDS[change.key].key if change.key in FIELDS else change.key)
                assert found is None or not change.values or not isinstance(now, int) or found.settings, change
                assert type(now) is not int or now > 1, change
    assert open_fixes(open_fixes(cause.fixes, config), config) == open_fixes(cause.fixes, config)


@pytest.mark.parametrize("fix", FIXES.values(), ids=list(FIXES))
def test_each_fix_of_the_catalogue_can_be_followed(fix: Fix) -> None:
    """Each key is one that a preset holds, each value one that its field takes."""
    for change in fix.changes:
        if "{" not in change.key:  # from the log
            where = where_of(change.key)
            known = change.key.startswith(("+", "env.")) or where[0] != "overrides" or any(defaults.life(where[1]))
            assert known, f"no preset field and no key of any veRL: {change.key}"
        if change.operation in ("lower", "raise"):
            assert all(map(float, change.values))
    found = remedy(fix, configuration(PRESET))
    if found is not None:
        restore("fixed", PRESET, found.settings)


@pytest.mark.parametrize(
    ("fix", "text"),
    [
        ("run `dmesg`", "run `dmesg`"),
        ({"set": {"a.b": "1", "c.d": "2"}, "why": ": both"}, "set a.b=1 c.d=2: both"),
        ({"or": True, "set": {"a.b": ["kl", "abs", "mse"]}}, "or set a.b=kl, abs or mse"),
        ({"when": "on AMD", "set": {"env.X": "1"}, "why": "to see it"}, "on AMD, env: X=1 to see it"),
        ({"lower": {"a.b": ["8", "1"], "c.d": []}}, "a.b ↓ (e.g. 8, then 1), c.d ↓"),
        ({"do": "keep fewer", "set": {"a.b": "1"}, "raise": {"c.d": []}}, "keep fewer: a.b=1, c.d ↑"),
        ({"choose": {"a.b": "a file", "c.d": "a file"}}, "set a.b and c.d to a file"),
        ({"choose": {"a.b": "a file", "c.d": "its function"}}, "set a.b to a file and c.d to its function"),
        ({"choose": {"env.A": "an interface", "env.B": "an interface"}}, "env: A= and B= an interface"),
        ({"do": "use a smaller model", "choose": {"a.b": ""}}, "use a smaller model: a.b"),
        ({"remove": ["a.b"], "why": "(not needed)"}, "remove a.b (not needed)"),
    ],
)
def test_the_sentence_of_a_fix(fix: str | dict[str, object], text: str) -> None:
    assert fix_of(fix).text == text
