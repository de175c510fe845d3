"""What + and - do to a value."""

from __future__ import annotations

from typing import Any

from drafted import of_draft
from tables import tabled

from launcher.preset.choices import allowed, divisors, step
from launcher.preset.field_values import where_of
from launcher.preset.schema import FIELDS

BATCH = {"data.train_batch_size": 128, "actor.ppo_mini_batch_size": 64, "rollout.n": 2, "trainer.gpus": 4}


def walk(name: str, value: Any, *ups: bool, **more: Any) -> list[Any]:
    config = of_draft({where_of(key): each for key, each in {**BATCH, **more}.items()})
    found = []
    for up in ups:
        value = step(FIELDS[name], value, up, config)
        found.append(value)
    return found


@tabled
def test_values_step_on_their_scale(name: str, value: Any, ups: list[Any], downs: list[Any]) -> None:
    assert walk(name, value, *[True] * len(ups)) == ups
    assert walk(name, value, *[False] * len(downs)) == downs


def test_batches_are_offered_what_divides_them() -> None:
    config = of_draft({where_of(key): value for key, value in BATCH.items()})
    assert allowed("ref.log_prob_micro_batch_size_per_gpu", config) == [1, 2, 4, 8, 16, 32, 64]
    odd = of_draft({("data", "train_batch_size"): 3, ("trainer", "gpus"): 2})
    assert allowed("rollout.log_prob_micro_batch_size_per_gpu", odd) == []
    assert divisors(12) == [1, 2, 3, 4, 6, 12] and divisors(0) == []


def test_what_verl_will_see_follows_as_in_verl() -> None:
    config = of_draft({("actor", "ppo_mini_batch_size"): 32, ("model", "path"): "m", ("algorithm",): "ppo"})
    assert config.get("critic.ppo_mini_batch_size") == 32
    assert config.get("critic.model.path") == "m" and config.get("algorithm.adv_estimator") == "gae"
    assert config.get("trainer.total_epochs") == 30 and config.get("no.such.key") is None
