"""The view of a screen's charts, and what it does to plots: zoom, pan, cursor, averages, axes of time and tokens."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pilots import words

from launcher.metrics.records import StepRecord
from launcher.metrics.store import Series, SeriesStore
from tui.kit.charts.axes import TOKENS_KEY, time_axis, time_limit, time_stride, token_axis
from tui.kit.charts.lens import Average, Lens, Smoothing
from tui.kit.charts.view import TIME, TOKENS, View, Whole
from tui.kit.drawing.plot import Curve, Plot

WHOLE = Whole(0, 1160, newest=290)
WILD = st.one_of(st.floats(width=32), st.sampled_from([math.nan, math.inf, -math.inf, 0.0]))


def series(values):
    made = Series()
    for step, value in enumerate(values, 1):
        made.append(step, value)
    return made


def run(*times, **figures):
    store = SeriesStore()
    for step, t in enumerate(times, 1):
        data = {key.replace("__", "/"): value * step for key, value in figures.items()}
        store.add(StepRecord(step, t, None, {"actor/loss": 1.0, **data}))
    return store


def test_the_average_is_not_pulled_to_zero_at_its_start():
    assert list(Average(series([4.0] * 5), 0.97).follow().values) == pytest.approx([4.0] * 5)
    found = Average(series([1.0, 2.0]), 0.6).follow()
    assert list(found.values) == pytest.approx([1.0, (0.6 * 0.4 * 1 + 0.4 * 2) / (0.6 * 0.4 + 0.4)])


@given(st.lists(WILD, max_size=30), st.integers(0, 30), st.sampled_from([0.6, 0.9, 0.97]))
def test_taking_on_an_average_gives_what_computing_it_anew_does(values, before, weight):
    grown = series(values[:before])
    average = Average(grown, weight)
    average.follow()
    for step, value in enumerate(values[before:], before + 1):
        grown.append(step, value)
    found, anew = average.follow(), Average(series(values), weight).follow()
    assert list(found.steps) == list(anew.steps)
    assert list(found.values) == pytest.approx(list(anew.values), nan_ok=True)
    assert [math.isfinite(value) for value in found.values] == [math.isfinite(value) for value in values]


def test_an_average_starts_anew_when_an_attempt_repeats_steps():
    source = series([1.0, 2.0, 3.0])
    smoothing = Smoothing()
    smoothing.of(source, 0.9)
    source.cut(2)
    source.append(2, 8.0)
    source.append(3, 9.0)
    assert list(smoothing.of(source, 0.9).values) == list(Average(series([1.0, 8.0, 9.0]), 0.9).follow().values)
    assert smoothing.of(source, 0.6).values[1] == pytest.approx((0.24 + 0.4 * 8) / 0.64)


def test_axes_of_time_and_tokens():
    store = run(100.0, 110.0, 120.0)
    for step, t in ((4, 9000.0), (5, 9010.0)):  # the pause before a resumed attempt is left out
        store.add(StepRecord(step, t, None, {"actor/loss": 1.0}), attempt=2)
    axis = time_axis(store)
    assert list(axis.spent) == [0, 10, 20, 30, 40]
    assert (axis.place(3), axis.step_at(20.0), axis.step_at(20.1), axis.step_at(99)) == (20, 3, 4, 6)
    assert time_axis(SeriesStore()) is None and time_axis(run(0.0, 0.0, 0.0)) is None
    assert token_axis(run(1.0, 2.0)) is None and token_axis(run(1.0, 2.0, **{TOKENS_KEY: math.nan})) is None
    axis = token_axis(run(1.0, 2.0, 3.0, **{TOKENS_KEY: 1000.0}))
    assert list(axis.spent) == [1000, 3000, 6000] and axis.label(axis.end) == "6000"
    ends = {1: 20, 61: 80, 3000: 3120, 90_000: 93_600}  # round durations
    assert {seconds: time_limit(seconds) for seconds in ends} == ends
    strides = {3: 5, 50: 60, 61: 120, 2000: 3600, 50_000: 86_400}
    assert {least: time_stride(least) for least in strides} == strides


def look(view, store, total=None, curves=None):
    lens = Lens()
    lens.view = view
    return lens.look(Plot("loss", curves=curves or [Curve(store.get("actor/loss"))]), store, total)


@pytest.mark.parametrize(
    ("view", "ends"),
    [
        (View(), (0, 230)),
        (View(fitted=True), (1, 212)),
        (View(window=(50, 150)), (50, 150)),
        (View(window=(50, 150), across=TIME), (49, 149)),
        (View(across=TIME), (0, 230)),
        (View(across=TOKENS), (0, 230_000)),
        (View(across=TOKENS, fitted=True), (10, 225_780)),
    ],
)
def test_the_ends_of_the_x_axis(view, ends):
    shown = look(view, run(*range(100, 312), **{TOKENS_KEY: 10.0}), total=1160)
    assert (shown.first, shown.last) == ends


def test_a_single_curve_keeps_its_raw_values_behind_and_points_stay_points():
    shown = look(View(smoothing=0.9), run(1.0, 2.0))
    assert [curve.role for curve in shown.curves] == ["raw", "curve"]
    lens = Lens()
    lens.view = View(smoothing=0.9)
    a, b, points = series([1.0, 2.0]), series([3.0, 4.0]), series([5.0])
    found = lens.smoothed([Curve(a), Curve(b, "curve-2"), Curve(points, "point", points_only=True)])
    assert [curve.role for curve in found] == ["curve", "curve-2", "point"] and found[2].points is points


POINTS = [Curve(series([1.0, 2.0])), Curve(series([7.0, 8.0]), "point", sign="○", points_only=True)]
SEVERAL = [Curve(series([1.0, 2.0]), sign="A"), Curve(series([1.0, 5.0]), "curve-2", sign="B")]


@pytest.mark.parametrize(
    ("view", "curves", "told", "roles"),
    [
        (View(cursor=2), None, ["at 2: 4"], ["title"]),
        (View(cursor=2, smoothing=0.6), None, ["at 2: 4", "average 3.25"], ["title", "dim"]),
        (View(cursor=9), None, ["at 9: –"], ["title"]),
        (View(cursor=2, smoothing=0.6), POINTS, ["at 2: 2", "○ 8", "average 1.62"], ["title", "point", "dim"]),
        (View(cursor=2), SEVERAL, ["at 2: A 2", "B 5"], ["curve", "curve-2"]),
    ],
)
def test_the_cursor_tells_the_values_at_its_step(view, curves, told, roles):
    shown = look(view, run(1.0, 2.0, actor__loss=2.0), curves=curves)
    assert [words([part]) for part in shown.headline] == told
    assert [part[-1][1] for part in shown.headline] == roles


def test_zooming_goes_around_the_newest_step_or_the_cursor_and_panning_ends_at_the_ends():
    once = View().zoomed(0.5, WHOLE)
    assert once.window == (145, 725) and once.zoomed(2, WHOLE) == View()
    assert (290 - 145) / 580 == 290 / 1160  # the newest step stays in its place
    assert View(cursor=1000).zoomed(0.5, WHOLE).window == (500, 1080)
    assert (1000 - 500) / 580 == 1000 / 1160
    view = View(window=(500, 600))
    for by, end in ((0.5, (1060, 1160)), (-0.5, (0, 100))):
        for _ in range(50):
            view = view.panned(by, WHOLE)
        assert view.window == end
    assert View().panned(0.5, WHOLE) == View()
    view = View(window=(500, 600), cursor=600)  # the window follows the cursor at its edges
    at = {610: (510, 610), 490: (490, 590), 550: (500, 600)}
    assert {step: view.pointing(step, WHOLE).window for step in at} == at


def test_a_window_with_the_newest_step_moves_on_with_the_run_and_others_stay():
    view = View().zoomed(0.5, Whole(0, 60, newest=24))
    assert view.window == (12, 42) and view.follows
    assert [view.shown(Whole(0, 80, newest)) for newest in (42, 43, 57, 58)] == [(12, 42), (27, 57), (27, 57), (42, 72)]
    assert view.shown(Whole(0, 75, newest=75)) == (45, 75)  # never out of the chart
    assert not view.panned(-0.5, Whole(0, 60, newest=42)).follows


def test_reading_values_holds_the_window_where_it_is():
    later = Whole(0, 80, newest=50)
    reading = View(window=(12, 42), follows=True).pointing(50, later)
    assert reading.shown(later) == reading.shown(Whole(0, 80, newest=70)) == (27, 57)
    assert replace(reading, cursor=None).shown(Whole(0, 80, newest=70)) == (42, 72)


@pytest.mark.parametrize(
    ("view", "words"),
    [
        (View(), []),
        (View(cursor=12), []),
        (View(window=(10, 50), smoothing=0.97), ["steps 10–50", "smoothed 0.97"]),
        (View(fitted=True, log=True, across=TOKENS), ["fitted", "log scale", "by tokens"]),
    ],
)
def test_what_is_unusual_is_said(view, words):
    assert view.words(WHOLE) == words


MOVES = st.lists(
    st.one_of(
        st.tuples(st.just("zoom"), st.sampled_from([0.5, 2.0])),
        st.tuples(st.just("pan"), st.sampled_from([-0.5, 0.5])),
        st.tuples(st.just("point"), st.integers(0, 5000)),
        st.tuples(st.just("grow"), st.integers(1, 400)),
        st.tuples(st.just("leave"), st.just(0)),
    ),
    max_size=40,
)


@given(st.integers(0, 4999), st.integers(1, 500), MOVES)
def test_no_keys_lead_out_of_the_run(newest, room, moves):
    view, whole = View(), Whole(0, newest + room, newest)
    for move, by in moves:
        if move == "zoom":
            view = view.zoomed(by, whole)
        elif move == "pan":
            view = view.panned(by, whole)
        elif move == "point":
            view = view.pointing(min(int(by), whole.last), whole)
        elif move == "grow":
            whole = Whole(0, whole.last + int(by), whole.newest + int(by))
        else:
            view = replace(view, cursor=None)
        first, final = view.shown(whole)
        assert whole.first <= first < final <= whole.last
        if move == "point":
            assert view.cursor is not None and first <= view.cursor <= final
