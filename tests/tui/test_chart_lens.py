"""What a view does to plots: averages, x axes of time and tokens, ends, the values at the cursor."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.metrics.records import StepRecord
from launcher.metrics.store import Series, SeriesStore
from tui.kit.charts.axes import TOKENS_KEY, time_axis, time_limit, time_stride, token_axis
from tui.kit.charts.lens import Average, Lens, Smoothing
from tui.kit.charts.view import TIME, TOKENS, View
from tui.kit.drawing.plot import Curve, Plot

WILD = st.one_of(st.floats(width=32), st.sampled_from([math.nan, math.inf, -math.inf, 0.0]))


def series(values: list[float]) -> Series:
    made = Series()
    for step, value in enumerate(values, 1):
        made.append(step, value)
    return made


def run(*times: float, **figures: float) -> SeriesStore:
    store = SeriesStore()
    for step, t in enumerate(times, 1):
        data = {key.replace("__", "/"): value * step for key, value in figures.items()}
        store.add(StepRecord(step, t, None, {"actor/loss": 1.0, **data}))
    return store


def test_the_average_is_not_pulled_to_zero_at_its_start() -> None:
    found = Average(series([4.0] * 5), 0.97).follow()
    assert list(found.values) == pytest.approx([4.0] * 5)
    found = Average(series([1.0, 2.0]), 0.6).follow()
    assert list(found.values) == pytest.approx([1.0, (0.6 * 0.4 * 1 + 0.4 * 2) / (0.6 * 0.4 + 0.4)])


@given(st.lists(WILD, max_size=30), st.integers(0, 30), st.sampled_from([0.6, 0.9, 0.97]))
def test_taking_on_an_average_gives_what_computing_it_anew_does(
    values: list[float], before: int, weight: float
) -> None:
    grown = series(values[:before])
    average = Average(grown, weight)
    average.follow()
    for step, value in enumerate(values[before:], before + 1):
        grown.append(step, value)
    found, anew = average.follow(), Average(series(values), weight).follow()
    assert list(found.steps) == list(anew.steps)
    assert list(found.values) == pytest.approx(list(anew.values), nan_ok=True)
    assert [math.isfinite(value) for value in found.values] == [math.isfinite(value) for value in values]


def test_an_average_starts_anew_when_an_attempt_repeats_steps() -> None:
    source = series([1.0, 2.0, 3.0])
    smoothing = Smoothing()
    smoothing.of(source, 0.9)
    source.cut(2)
    source.append(2, 8.0)
    source.append(3, 9.0)
    assert list(smoothing.of(source, 0.9).values) == list(Average(series([1.0, 8.0, 9.0]), 0.9).follow().values)
    assert smoothing.of(source, 0.6).values[1] == pytest.approx((0.24 + 0.4 * 8) / 0.64)


def test_time_leaves_out_the_pause_before_a_resumed_attempt() -> None:
    store = run(100.0, 110.0, 120.0)
    store.add(StepRecord(4, 9000.0, None, {"actor/loss": 1.0}), attempt=2)
    store.add(StepRecord(5, 9010.0, None, {"actor/loss": 1.0}), attempt=2)
    axis = time_axis(store)
    assert axis is not None and list(axis.spent) == [0, 10, 20, 30, 40]
    assert (axis.place(3), axis.step_at(20.0), axis.step_at(20.1), axis.step_at(99)) == (20, 3, 4, 6)


def test_without_times_or_tokens_there_is_no_such_axis() -> None:
    assert time_axis(SeriesStore()) is None and time_axis(run(0.0, 0.0, 0.0)) is None
    assert token_axis(run(1.0, 2.0)) is None
    assert token_axis(run(1.0, 2.0, **{TOKENS_KEY: math.nan})) is None


def test_tokens_add_up() -> None:
    axis = token_axis(run(1.0, 2.0, 3.0, **{TOKENS_KEY: 1000.0}))
    assert axis is not None and list(axis.spent) == [1000, 3000, 6000]
    assert axis.label(axis.end) == "6000"


@pytest.mark.parametrize(("seconds", "end"), [(1, 20), (61, 80), (3000, 3120), (90_000, 93_600)])
def test_an_axis_of_time_ends_at_a_round_duration(seconds: float, end: float) -> None:
    assert time_limit(seconds) == end


@pytest.mark.parametrize(("least", "found"), [(3, 5), (50, 60), (61, 120), (2000, 3600), (50_000, 86_400)])
def test_ticks_of_an_axis_of_time_are_round_durations_apart(least: float, found: float) -> None:
    assert time_stride(least) == found


def look(view: View, store: SeriesStore, total: int | None = None) -> Plot:
    lens = Lens()
    lens.view = view
    found = store.get("actor/loss")
    assert found is not None
    return lens.look(Plot("loss", curves=[Curve(found)]), store, total)


def test_the_ends_of_the_x_axis() -> None:
    store = run(*range(100, 312), **{TOKENS_KEY: 10.0})

    def ends(view: View) -> tuple[float, float]:
        shown = look(view, store, total=1160)
        return shown.first, shown.last

    assert ends(View()) == (0, 230)
    assert ends(View(fitted=True)) == (1, 212)
    assert ends(View(window=(50, 150))) == (50, 150)
    assert ends(View(window=(50, 150), across=TIME)) == (49, 149)
    assert ends(View(across=TIME)) == (0, 230)
    assert ends(View(across=TOKENS)) == (0, 230_000)
    assert ends(View(across=TOKENS, fitted=True)) == (10, 225_780)


def test_a_single_curve_keeps_its_raw_values_behind() -> None:
    shown = look(View(smoothing=0.9), run(1.0, 2.0))
    assert [curve.role for curve in shown.curves] == ["raw", "curve"]


def test_several_curves_are_averages_alone_and_points_stay_points() -> None:
    lens = Lens()
    lens.view = View(smoothing=0.9)
    a, b, points = series([1.0, 2.0]), series([3.0, 4.0]), series([5.0])
    found = lens.smoothed([Curve(a), Curve(b, "curve-2"), Curve(points, "point", points_only=True)])
    assert [curve.role for curve in found] == ["curve", "curve-2", "point"]
    assert found[2].points is points


def said(plot: Plot) -> list[str]:
    return ["".join(text for text, _ in part) for part in plot.headline]


def test_the_cursor_tells_the_value_at_its_step_and_the_average() -> None:
    store = run(1.0, 2.0, actor__loss=2.0)
    assert said(look(View(cursor=2), store)) == ["at 2: 4"]
    assert said(look(View(cursor=2, smoothing=0.6), store)) == ["at 2: 4", "average 3.25"]
    assert said(look(View(cursor=9), store)) == ["at 9: –"]


def test_points_beside_a_curve_take_nothing_from_it() -> None:
    lens = Lens()
    lens.view = View(cursor=2, smoothing=0.6)
    curves = [Curve(series([1.0, 2.0])), Curve(series([7.0, 8.0]), "point", sign="○", points_only=True)]
    shown = lens.look(Plot("reward", curves=curves), run(1.0, 2.0), None)
    assert said(shown) == ["at 2: 2", "○ 8", "average 1.62"]
    assert [part[-1][1] for part in shown.headline] == ["title", "point", "dim"]


def test_the_cursor_tells_every_curve_of_several() -> None:
    lens = Lens()
    lens.view = View(cursor=2)
    curves = [Curve(series([1.0, 2.0]), sign="A"), Curve(series([1.0, 5.0]), "curve-2", sign="B")]
    shown = lens.look(Plot("reward", curves=curves), run(1.0, 2.0), None)
    assert said(shown) == ["at 2: A 2", "B 5"]
    assert shown.headline[1][-1][1] == "curve-2"
