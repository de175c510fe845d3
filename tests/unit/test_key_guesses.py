"""A rename is proposed for a slip of the hand and for keys that are known, never for one that only looks similar."""

from pathlib import Path

import pytest
from corpus import machine
from tables import tabled

from launcher.check.checks import quick
from launcher.check.finding import Finding
from launcher.check.subject import subject
from launcher.core.text import slip_of
from launcher.preset.files import load_text
from launcher.verl import versions
from launcher.verl.defaults import NEWEST, bundled, leaves

# of public scripts; a rename of these by spelling trained on 8 rows, or ended the run after 2 steps
UNKNOWN = [
    "actor_rollout_ref.actor.loss_type",
    "actor_rollout_ref.actor.replay_loss_coef",
    "actor_rollout_ref.actor.use_token_level_loss",
    "actor_rollout_ref.rollout.micro_batch_size",
    "actor_rollout_ref.rollout.val_temperature",
    "algorithm.use_toolcall_reward",
    "env.rollout.n",
    "lora.rank",
    "trainer.stage",
]


def of_key(given: str, key: str = "") -> Finding:
    text = f"extends: toy-cpu\noverrides: {{{given}: 2}}\n"
    found = quick(subject(load_text(Path("mine.yaml"), text), on=machine("1x24")))
    (only,) = [each for each in found if (key or given) in each.keys]
    return only


@pytest.mark.parametrize("key", UNKNOWN)
def test_a_key_that_only_looks_similar_is_not_renamed(key: str) -> None:
    assert of_key(key).id == "KEY-1" and of_key(key).rename is None and of_key(key).change is None


@pytest.mark.parametrize("key", versions.foreign())
def test_a_key_of_a_fork_is_renamed_to_what_means_the_same_or_removed(key: str) -> None:
    row, found = versions.foreign()[key], of_key(key)
    (change,) = found.fixes[0].changes
    assert row.of in found.message
    assert (change.operation, change.key) == ("rename" if row.instead else "remove", key)
    assert row.instead in ("", change.words)
    assert key not in leaves(bundled(NEWEST)) and (not row.instead or row.instead in leaves(bundled(NEWEST)))


@pytest.mark.parametrize("key", [key for key, row in versions.foreign().items() if row.instead])
def test_a_key_of_a_fork_that_is_added_has_no_effect(key: str) -> None:
    found = of_key(f"+{key}", key)
    assert found.id in ("KEY-3", "V18") and versions.foreign()[key].instead.rpartition(".")[2] in found.fix


@pytest.mark.parametrize(
    ("slip", "meant"),
    [("data.trian", "data.train"), ("trainer.loger", "trainer.logger"), ("trainer.nnoodes", "trainer.nnodes")],
)
def test_a_slip_is_renamed(slip: str, meant: str) -> None:
    assert of_key(slip).rename == (slip, meant)


@tabled
def test_one_letter_away(name: str, meant: str | None) -> None:
    assert slip_of(name, ["epochs", "top_k"]) == meant
