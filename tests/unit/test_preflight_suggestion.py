"""What somebody means with a value that is refused."""

from pathlib import Path
from typing import Any

import pytest

from launcher.check.checks import refusals, report
from launcher.check.suggestion import suggested_value
from launcher.core.errors import UserError
from launcher.preset.draft import Draft
from launcher.preset.schema import FIELDS


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("actor.lr", "1e-6", 1e-6),
        ("data.train_batch_size", 64.0, 64),
        ("data.train_batch_size", "64", 64),
        ("trainer.validate_first", "False", False),
        ("trainer.validate_first", "no", False),
        ("actor.use_dynamic_bsz", 1, True),
        ("trainer.epochs", 1e3, 1000),
        ("actor.betas", ["0.9,0.95"], [0.9, 0.95]),
        ("actor.betas", "[0.9, 0.95]", [0.9, 0.95]),
        ("rollout.gpu_memory_utilization", 90, 0.9),
        ("rollout.gpu_memory_utilization", "40%", 0.4),
        ("rollout.gpu_memory_utilization", 1.0, 0.5),  # veRL's own
        ("rollout.temperature", 0, 1.0),
        ("advantage.gamma", 1.5, 1),
        ("model.lora_rank", 513, 512),
        ("rollout.n", 0, 1),
        ("actor.lr_scheduler_type", "Cosin", "cosine"),
        ("trainer.loggers", None, []),
        ("model.attention", "quick", None),
        ("actor.lr", "fast", None),
        ("data.train_batch_size", "lots", None),
    ],
)
def test_the_nearest_allowed_value(name: str, value: Any, wanted: Any) -> None:
    found = suggested_value(FIELDS[name], value)
    assert found == wanted and type(found) is type(wanted)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("extends: toy-cpu\nactor: {lr: fast}\n", "set actor.lr to 0.0003"),
        ("extends: toy-cpu\ndata: {train_batch_size: 0}\n", "set data.train_batch_size to 64"),
        ("extends: toy-cpu\nrecipe: dapo\nactor: {clip_ratio_high: wide}\n", "set actor.clip_ratio_high to 0.28"),
        ("extends: toy-cpu\ntrainer: {keep_best: some}\n", "use a whole number"),  # nobody has one
    ],
)
def test_the_value_that_applies_without_a_wrong_one_is_offered(text: str, says: str, tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text(text)
    (found,) = report(str(mine)).findings
    assert says in found.fix
    (found,) = refusals(Draft(mine, text, on_disk=None), UserError("refused"))
    assert says in found.fix + found.message


def test_the_value_of_the_preset_is_offered_under_the_name_that_was_typed() -> None:
    (found,) = report("toy-cpu", ["actor_rollout_ref.actor.optim.lr=5"], static=True).findings
    assert found.message == "actor_rollout_ref.actor.optim.lr is 5, which is not allowed"
    assert found.fix == "set actor_rollout_ref.actor.optim.lr to 0.0003, or remove it"
