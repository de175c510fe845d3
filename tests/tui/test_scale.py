"""Axes: ranges contain their values, ticks are round, labels are short."""

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tables import tabled

from tui.kit.drawing.scale import LABEL, labels, log_scale, step_limit, stride, value_scale

VALUES = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def narrow(draw):
    """Two values close to each other, of any size that metrics have."""
    value = draw(st.floats(1e-30, 1e30)) * draw(st.sampled_from([1, -1]))
    return value, value * (1 + draw(st.floats(-1e-2, 1e-2)))


RANGES = st.one_of(st.tuples(VALUES, VALUES), narrow())


def told(label):
    """The value that a label says."""
    unit = {"k": 1e3, "M": 1e6, "G": 1e9}.get(label[-1])
    return float(label[:-1]) * unit if unit else float(label)


@given(RANGES, st.integers(1, 100))
def test_a_scale_contains_its_values_and_has_few_ticks(ends, rows):
    low, high, ticks = value_scale(*ends, rows)
    assert math.isfinite(low) and math.isfinite(high) and low < high
    least, most = sorted(max(-1e290, min(value, 1e290)) for value in ends)
    slack = 1e-6 * (high - low)
    size = max(abs(least), abs(most))
    assert high - low <= max(25 * (most - least), 10 * size) or size < 1e-97
    assert low - slack <= least <= most <= high + slack
    assert 2 <= len(ticks) <= max(rows, 3)
    assert list(ticks) == sorted(ticks)


@given(RANGES, st.integers(1, 100))
@example((11.62352, 11.62408), 4)  # an entropy of 4 steps whose labels were all 11.624
@example((-5e-4, 0.0), 3)
def test_labels_of_an_axis_differ_fit_their_column_and_are_true(ends, rows):
    ticks = value_scale(*ends, rows).ticks
    written, distance = labels(ticks), ticks[1] - ticks[0]
    assert len(set(written)) == len(ticks)
    assert all(0 < len(label) <= LABEL for label in written)
    assert all(abs(told(label) - tick) <= 1e-3 * distance for label, tick in zip(written, ticks, strict=True))


@tabled
def test_ticks_are_round(low, high, rows, written):
    assert labels(value_scale(low, high, rows).ticks) == written


@pytest.mark.parametrize(
    ("total", "ends"),
    [
        (3, {0: 2, 1: 2, 3: 3}),
        (80, {0: 2, 7: 8, 49: 52, 62: 70, 68: 80, 90: 90, 91: 100}),  # a resumed run may go beyond its first plan
        (26, {26: 26}),  # of a run that was stopped there
        (4660, {11: 12, 41: 46, 1001: 1150, 2912: 3000, 3001: 3500, 4000: 4660, 4660: 4660}),
        (None, {0: 2, 10: 10, 11: 12, 27: 30, 99: 100, 2100: 2300}),
    ],
)
def test_the_step_axis_ends_at_a_rung_or_at_the_plan(total, ends):
    assert {last: step_limit(last, total) for last in ends} == ends


@given(st.integers(7, 10**6), st.integers(5, 10**6))
def test_the_steps_of_a_long_run_fill_much_of_the_axis_long_before_its_plan(total, last):
    last = min(last, total)
    limit = step_limit(last, total)
    assert last <= limit <= total
    assert last >= 0.8 * limit


@pytest.mark.parametrize("total", [7, 80, 100, 130, 300, 1160, 4660, 6000])
def test_the_step_axis_of_a_planned_run_is_seldom_another_one(total):
    ends = sorted({step_limit(last, total) for last in range(1, total + 1)})
    assert ends[-1] == total and len(ends) <= 17 * len(str(total))


@given(st.integers(0, 10**9))
def test_a_rung_leaves_a_small_part_of_the_axis_empty(last):
    limit = step_limit(last, None)
    assert limit >= last
    assert limit <= max(2, last * 1.18 + 1.5)


@given(st.floats(1e-98, 1e290), st.floats(1e-98, 1e290), st.integers(1, 100))
def test_a_log_axis_holds_its_values_and_its_labels_differ_fit_their_column_and_are_true(a, b, rows):
    low, high, ticks = log_scale(a, b, rows)
    assert low <= min(a, b) * (1 + 1e-9) and high >= max(a, b) * (1 - 1e-9)
    assert list(ticks) == sorted(set(ticks)) and (ticks[0], ticks[-1]) == (low, high)
    assert len(ticks) <= max((rows + 1) // 2, 2)
    written = [labels([tick])[0] for tick in ticks]
    assert len(set(written)) == len(ticks) and all(0 < len(label) <= LABEL for label in written)
    assert all(told(label) == pytest.approx(tick) for label, tick in zip(written, ticks, strict=True))


@given(st.floats(1e-2, 1e12), st.floats(1e-2, 1e-1), st.integers(3, 12))
def test_a_range_is_only_widened_as_far_as_labels_demand(value, share, rows):
    """Three digits are always told: a range of a hundredth of its value or more fills the chart."""
    low, high, _ = value_scale(value, value * (1 + share), rows)
    assert high - low <= 4 * share * value
    ends = {0.2: 1, 1: 1, 1.1: 2, 3: 5, 6: 10, 10: 10, 11: 20, 260: 500, 5001: 10_000}  # 1, 2 or 5 of a power of ten
    assert {least: stride(least) for least in ends} == ends
