"""Axes: ranges contain their values, ticks are round, labels are short."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.drawing.scale import LABEL, labels, step_limit, value_scale

VALUES = st.floats(allow_nan=False, allow_infinity=False)


@given(VALUES, VALUES, st.integers(1, 30))
def test_a_scale_contains_its_values_and_has_few_ticks(a: float, b: float, rows: int) -> None:
    low, high, ticks = value_scale(a, b, rows)
    assert math.isfinite(low) and math.isfinite(high) and low < high
    least, most = sorted(max(-1e300, min(value, 1e300)) for value in (a, b))
    slack = 1e-6 * (high - low)
    assert high - low <= 25 * (most - least) or most - least <= 1e-8 * max(abs(most), abs(least), 1e-290)
    assert low - slack <= least <= most <= high + slack
    assert 2 <= len(ticks) <= max(rows, 3)
    assert list(ticks) == sorted(ticks)


@given(VALUES, VALUES, st.integers(1, 20))
def test_labels_fit_their_column(a: float, b: float, rows: int) -> None:
    written = labels(value_scale(a, b, rows).ticks)
    assert all(0 < len(label) <= LABEL for label in written)


@pytest.mark.parametrize(
    ("low", "high", "rows", "written"),
    [
        (0.0, 0.412, 3, ["0", "0.25", "0.50"]),
        (0.0, 0.49, 5, ["0", "0.25", "0.50"]),
        (0.26, 0.83, 5, ["0.2", "0.4", "0.6", "0.8", "1.0"]),
        (0.26, 0.83, 4, ["0.25", "0.50", "0.75", "1.00"]),
        (0.22, 0.54, 12, ["0.2", "0.3", "0.4", "0.5", "0.6"]),
        (1600.0, 1900.0, 3, ["1.6k", "1.8k", "2.0k"]),
        (-188453.0, 0.0, 5, ["-200k", "-100k", "0"]),
        (0.0, 0.0004, 3, ["0", "2e-4", "4e-4"]),
        (0.5, 0.5, 3, ["0.45", "0.50", "0.55"]),
        (0.0, 0.0, 2, ["0", "1"]),
    ],
)
def test_ticks_are_round(low: float, high: float, rows: int, written: list[str]) -> None:
    assert labels(value_scale(low, high, rows).ticks) == written


@pytest.mark.parametrize(
    ("total", "ends"),
    [
        (80, {0: 80, 62: 80, 90: 100}),  # a resumed run may go beyond its first plan
        (4660, {0: 60, 24: 60, 60: 60, 61: 80, 1001: 1500, 3000: 3000, 3001: 4660, 4660: 4660}),
        (None, {0: 10, 10: 10, 11: 15, 16: 20, 27: 30, 99: 100, 2100: 3000}),
    ],
)
def test_the_step_axis_ends_at_a_rung_or_at_the_plan(total: int | None, ends: dict[int, int]) -> None:
    assert {last: step_limit(last, total) for last in ends} == ends


@given(st.integers(91, 10**6), st.integers(25, 10**6))
def test_the_steps_of_a_long_run_fill_much_of_the_axis_long_before_its_plan(total: int, last: int) -> None:
    last = min(last, total)
    limit = step_limit(last, total)
    assert last <= limit <= total
    assert last >= 0.4 * limit


@pytest.mark.parametrize("total", [7, 80, 100, 130, 300, 1160, 4660, 6000])
def test_the_step_axis_of_a_planned_run_is_seldom_another_one(total: int) -> None:
    ends = sorted({step_limit(last, total) for last in range(total + 1)})
    assert ends[-1] == total and len(ends) <= 14
    assert all(b - a >= 20 for a, b in pairwise(ends))


@given(st.integers(0, 10**9))
def test_a_rung_leaves_at_most_half_of_the_axis_empty(last: int) -> None:
    limit = step_limit(last, None)
    assert limit >= last
    assert limit <= max(10, last * 1.51)
