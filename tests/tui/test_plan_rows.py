"""The way of a batch, memory and differences as rows."""

from __future__ import annotations

from typing import Any

import pytest
from drafted import of_draft

from launcher.preset.drafts import open_draft
from launcher.preset.field_values import where_of
from launcher.preset.flow import flow
from tui.kit.drawing.rows import Row, width
from tui.pages.editor.plan_rows import difference_rows, flow_rows, memory_rows
from tui.pages.editor.preset_form import Form

GIB = 1 << 30


def words(rows: list[Row]) -> list[str]:
    return ["".join(text for text, _ in row).rstrip() for row in rows]


def of(rows: int | None, columns: int = 78, **values: Any) -> str:
    given = {where_of(name.replace("__", ".")): value for name, value in values.items()}
    return "\n".join(words(flow_rows(flow(of_draft({("trainer", "gpus"): 1, **given}), rows), columns)))


def test_what_would_go_wrong_is_said() -> None:
    text = of(50, data__train_batch_size=100, actor__ppo_mini_batch_size=64, trainer__gpus=3)
    assert "28 padding responses" in text and "does not divide evenly across 3 GPUs" in text
    assert "fewer rows than one step requires" in text
    text = of(1000, data__train_batch_size=100, trainer__steps=500, trainer__epochs=2)
    assert "the epochs end before trainer.steps" in text and "20 steps (2 epochs)" in text
    assert "40 steps (trainer.steps)" in of(None, trainer__steps=40)
    assert "the training file cannot be read" in of(None)


def test_a_learning_rate_that_changes_is_followed_to_its_end() -> None:
    assert "actor lr" not in of(None, trainer__steps=40)
    up: dict[str, Any] = {"trainer__steps": 40, "actor__lr": 1e-6}
    text = of(None, **up, actor__lr_warmup_steps=10, actor__lr_scheduler_type="cosine", actor__min_lr_ratio=0.1)
    assert " actor lr  up to 1e-6 in 10 steps, then a cosine to 1e-7" in text
    assert "up to 1e-6 in 10 steps, then constant" in of(None, **up, actor__lr_warmup_steps=10)
    assert "up to 1e-6 in 80 steps, but the run ends at 4.9e-7" in of(None, **up, actor__lr_warmup_steps=80)


def test_one_is_told_apart_from_many() -> None:
    text = of(
        None,
        data__train_batch_size=8,
        actor__ppo_mini_batch_size=8,
        rollout__n=4,
        actor__ppo_micro_batch_size_per_gpu=1,
    )
    assert "8 prompts × 4 responses = 32" in text and "1 mini-batch of 8 prompts" in text
    assert "32 micro-batches of 1 response on its GPU" in text and "= 1 optimizer step per step" in text


def test_the_plan_is_that_of_the_verl_that_runs() -> None:
    def shown(version: str) -> str:
        return "\n".join(words(flow_rows(flow(Form(open_draft("gsm8k-0.5b-h800"), version).config), 78)))

    assert "8 micro-batches of 4 responses" in shown("0.7.1") and "same as the actor" in shown("0.7.1")
    assert "1 micro-batch of up to 32,768 tokens" in shown("0.8.0")  # of the critic, whatever is set


@pytest.mark.parametrize("columns", [8, 20, 40, 78, 200])
def test_rows_fit(columns: int) -> None:
    phases = [{"name": "update actor", "gpu": 30 * GIB, "gpu_high": 90 * GIB}]
    memory = {"phases": phases, "gpu_total": 24 * GIB, "host": GIB, "host_high": 2 * GIB}
    found = flow(of_draft({("data", "train_batch_size"): 10**6}), 10**9)
    assert all(width(row) <= columns for row in flow_rows(found, columns))
    if columns >= 40:
        assert all(width(row) <= columns for row in memory_rows(memory, "a GPU", columns))
    assert all(width(row) <= columns for row in difference_rows([("a", 1, "b" * 300)], "x", columns)[1:])


@pytest.mark.parametrize(("certain", "high", "role"), [(20, 22, "ok"), (20, 30, "warn"), (30, 40, "critical")])
def test_a_phase_that_does_not_fit_is_marked(certain: int, high: int, role: str) -> None:
    phase = {"name": "rollout", "gpu": certain * GIB, "gpu_high": high * GIB}
    row = memory_rows({"phases": [phase], "gpu_total": 24 * GIB}, "", 78)[0]
    assert row[0][1] == role
    assert words(memory_rows(None, "", 78)) == [" model size unknown"]
    assert "host 1.0" in words(memory_rows({"phases": [], "host": GIB, "host_high": GIB}, "", 78))[-1]


def test_nothing_differs() -> None:
    assert words(difference_rows([], "toy-cpu", 78)) == [" ● same as toy-cpu"]
