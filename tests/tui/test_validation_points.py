"""Validation scores on the chart of the reward."""

import math
from types import SimpleNamespace
from typing import Any

import pytest

from launcher.metrics.names import REWARD
from launcher.metrics.records import StepRecord
from launcher.metrics.store import SeriesStore
from tui.kit.charts.figures import plot
from tui.kit.drawing.plot import Plot

OLD, NEW = "val/test_score/gsm8k", "val-core/openai/gsm8k/acc/mean@1"


def shown(make: SimpleNamespace, reward: list[float], **validations: dict[int, float]) -> Plot:
    store = SeriesStore()
    for step, value in enumerate(reward, 1):
        scores = {key: found[step] for key, found in validations.items() if step in found}
        store.add(StepRecord(step, step, None, {"critic/score/mean": value, **scores}))
    return plot(REWARD, store, make.running(), [])


def points(drawn: Plot) -> list[tuple[int, float]]:
    return [
        (step, value)
        for curve in drawn.curves
        if curve.points_only
        for step, value in zip(curve.points.steps, curve.points.values, strict=True)
    ]


def headline(drawn: Plot) -> str:
    return " ".join("".join(text for text, _ in part) for part in drawn.headline)


@pytest.mark.parametrize("key", [OLD, NEW])
def test_validations_are_points_and_the_last_one_is_told(make: SimpleNamespace, key: str) -> None:
    drawn = shown(make, [0.1, 0.2, 0.3], **{key: {1: 0.15, 3: 0.4}})
    assert points(drawn) == [(1, 0.15), (3, 0.4)]
    assert headline(drawn).endswith("○ val 0.400")


def test_several_data_sources_are_one_mean(make: SimpleNamespace) -> None:
    other = "val-core/math/acc/mean@1"
    aside: dict[str, Any] = {"val-core/math/acc/best@4/mean": {1: 9.0}, "val-aux/math/acc/mean@1": {1: 9.0}}
    drawn = shown(make, [0.1, 0.2], **{NEW: {1: 0.2, 2: 0.3}, other: {1: 0.4}}, **aside)
    assert points(drawn) == [(1, pytest.approx(0.3)), (2, 0.3)]


def test_a_score_on_another_scale_is_told_but_not_drawn(make: SimpleNamespace) -> None:
    drawn = shown(make, [-1.0, -0.5, 0.0], **{NEW: {2: 62.5}})
    assert points(drawn) == [] and headline(drawn).endswith("○ val 62.5")
    near = shown(make, [-1.0, -0.5, 0.0], **{NEW: {2: 0.5}})
    assert points(near) == [(2, 0.5)]


def test_validations_that_are_no_numbers_are_left_out(make: SimpleNamespace) -> None:
    drawn = shown(make, [0.1, 0.2], **{NEW: {1: math.nan}})
    assert points(drawn) == [] and "val" not in headline(drawn)
    assert "val" not in headline(shown(make, [0.1, 0.2]))
