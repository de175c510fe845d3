"""What + and - do to a value."""

from __future__ import annotations

from typing import Any

import pytest
from drafted import of_draft

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


@pytest.mark.parametrize(
    ("name", "value", "ups", "downs"),
    [
        ("actor.lr", 1e-6, [2e-6, 5e-6, 1e-5], [5e-7, 2e-7, 1e-7]),
        ("actor.lr", 3e-6, [5e-6, 1e-5], [2e-6, 1e-6]),
        ("kl.coef", 0, [1e-4, 2e-4], [0.0]),
        ("actor.lr", None, [2e-6], [5e-7]),  # from veRL's 1e-6
        ("rollout.gpu_memory_utilization", 0.4, [0.45, 0.5], [0.35, 0.3]),
        ("rollout.gpu_memory_utilization", 0.42, [0.45], [0.4]),
        ("data.train_batch_size", 128, [256, 512], [64, 32]),
        ("actor.ppo_mini_batch_size", 64, [128, None], [32, 16]),
        ("actor.ppo_micro_batch_size_per_gpu", 8, [16, 32, None], [4, 2]),  # 64 prompts x 2 on 4 GPUs
        ("rollout.tensor_model_parallel_size", 1, [2, 4, None], [None]),
        ("trainer.epochs", 20, [21, 22], [19]),
        ("trainer.save_every", 20, [25, 30], [15, 10, 5, -1]),
        ("trainer.save_every", -1, [5, 10], []),
        ("trainer.save_every", 7, [10], [5]),
        ("actor.strategy", "fsdp", ["fsdp2", "fsdp_turbo"], ["torchtitan"]),
        ("actor.shuffle", None, [True, False], [True]),
        ("model.lora_rank", 0, [1, 2], [None]),
        ("model.path", "a/b", [None], [None]),
    ],
)
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
