"""The way of a batch, against veRL's own formulas and the tutorials' numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from drafted import of_draft
from tables import tabled

from launcher.preset import effective
from launcher.preset.field_values import where_of
from launcher.preset.files import load
from launcher.preset.flow import Flow, flow, rows_of


def of(rows: int | None = None, **values: Any) -> Flow:
    given = {where_of(name.replace("__", ".")): value for name, value in values.items()}
    return flow(of_draft(given), rows)


def shipped(name: str, rows: int | None = None, *settings: str) -> Flow:
    layer = load(name, settings).layer
    return flow(effective.of_draft(layer), rows)


def test_the_tutorials_run_on_one_gpu() -> None:
    """001: 128 prompts a step in two mini-batches of 64, 20 epochs of GSM8K's 7,473 rows."""
    found = shipped("gsm8k-0.5b-24gb", 7473)
    assert (found.prompts, found.n, found.responses, found.actor.mini_batches, found.actor.steps) == (128, 1, 128, 2, 2)
    assert found.actor.tokens == 16384 and found.longest == 768 and found.actor.micro_batches == 4
    assert (found.steps_an_epoch, found.unused_rows, found.steps) == (58, 49, 1160)
    assert found.actor_updates == 2320
    assert (found.validations, found.checkpoints, found.kept) == (1160 // 5 + 1, 58, 3)


def test_grpo_has_no_critic_and_counts_responses() -> None:
    found = shipped("gsm8k-grpo-24gb", 7473)
    assert found.critic is None and found.n == 5 and found.responses == 80
    assert found.actor.mini_batches == 1 and found.actor.per_gpu == 80
    assert found.actor.micro == 4 and found.actor.micro_batches == 20


def test_the_toy_run_ends_by_its_steps() -> None:
    found = shipped("toy-cpu", 512)
    assert (found.steps_an_epoch, found.steps, found.early) == (8, 60, False)
    assert (found.validations, found.checkpoints, found.kept) == (7, 6, 3)
    assert shipped("toy-cpu", 512, "trainer.max_actor_ckpt_to_keep=0").kept == 6  # 0 keeps all
    assert found.actor.micro == 32 and found.actor.micro_batches == 1


def test_gpus_share_the_responses_of_a_mini_batch() -> None:
    found = of(
        data__train_batch_size=1024,
        actor__ppo_mini_batch_size=256,
        trainer__gpus=8,
        rollout__n=4,
        actor__ppo_micro_batch_size_per_gpu=16,
        actor__ulysses_sequence_parallel_size=2,
    )
    assert found.ranks == 4 and found.actor.per_gpu == 256 and found.actor.micro_batches == 16
    assert found.critic is not None and found.critic.mini == 256 and found.critic.tokens == 32768


def test_a_mini_batch_that_does_not_divide_is_padded() -> None:
    found = of(data__train_batch_size=100, actor__ppo_mini_batch_size=64, rollout__n=2)
    assert found.actor.mini_batches == 2 and found.padding == 56
    assert of(data__train_batch_size=64, actor__ppo_mini_batch_size=128).padding == 64


@tabled
def test_what_ends_a_run(rows, steps, found, early, checkpoints):
    run = of(
        rows,
        data__train_batch_size=110,
        trainer__steps=steps,
        trainer__epochs=3,
        trainer__save_every=10,
        trainer__validate_every=-1,
    )
    assert (run.steps, run.early, run.checkpoints) == (found, early, checkpoints)
    assert run.validations == 1


def test_the_critic_may_learn_alone_first() -> None:
    run = of(
        1280,
        data__train_batch_size=128,
        actor__ppo_mini_batch_size=64,
        trainer__epochs=1,
        trainer__critic_warmup=4,
        actor__ppo_epochs=2,
    )
    assert run.steps == 10 and run.actor_updates == 6 * 4


def test_rows_are_read_from_the_end_of_the_files(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    for name, count in (("a", 3), ("b", 4)):
        parquet.write_table(pyarrow.table({"x": list(range(count))}), tmp_path / f"{name}.parquet")
    assert rows_of([str(tmp_path / "a.parquet"), str(tmp_path / "b.parquet")]) == 7
    assert rows_of(str(tmp_path / "none.parquet")) is None and rows_of(None) is None
    (tmp_path / "bad.parquet").write_text("no")
    assert rows_of(str(tmp_path / "bad.parquet")) is None
    assert of(7, data__train_max_samples=5).rows == 5
