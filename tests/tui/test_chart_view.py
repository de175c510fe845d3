"""The view of a screen's charts: zoom, pan and cursor stay inside the run, whatever is pressed."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.kit.charts.view import TOKENS, View, Whole

WHOLE = Whole(0, 1160, newest=290)


def test_zooming_keeps_the_newest_step_in_its_place() -> None:
    once = View().zoomed(0.5, WHOLE)
    assert once.window == (145, 725)
    assert (290 - 145) / 580 == 290 / 1160
    assert once.zoomed(2, WHOLE) == View()


def test_zooming_goes_around_the_cursor() -> None:
    found = View(cursor=1000).zoomed(0.5, WHOLE).window
    assert found == (500, 1080)
    assert (1000 - 500) / 580 == 1000 / 1160


def test_a_window_with_the_newest_step_moves_on_with_the_run_and_others_stay() -> None:
    view = View().zoomed(0.5, Whole(0, 60, newest=24))
    assert view.window == (12, 42) and view.follows
    assert [view.shown(Whole(0, 80, newest)) for newest in (42, 43, 57, 58)] == [(12, 42), (27, 57), (27, 57), (42, 72)]
    assert view.shown(Whole(0, 75, newest=75)) == (45, 75)  # never out of the chart
    assert not view.panned(-0.5, Whole(0, 60, newest=42)).follows


def test_reading_values_holds_the_window_where_it_is() -> None:
    later = Whole(0, 80, newest=50)
    reading = View(window=(12, 42), follows=True).pointing(50, later)
    assert reading.shown(later) == reading.shown(Whole(0, 80, newest=70)) == (27, 57)
    assert replace(reading, cursor=None).shown(Whole(0, 80, newest=70)) == (42, 72)


def test_panning_ends_at_the_ends() -> None:
    view = View(window=(500, 600))
    for _ in range(50):
        view = view.panned(0.5, WHOLE)
    assert view.window == (1060, 1160)
    for _ in range(50):
        view = view.panned(-0.5, WHOLE)
    assert view.window == (0, 100)
    assert View().panned(0.5, WHOLE) == View()


def test_the_window_follows_the_cursor_at_its_edges() -> None:
    view = View(window=(500, 600), cursor=600)
    assert view.pointing(610, WHOLE).window == (510, 610)
    assert view.pointing(490, WHOLE).window == (490, 590)
    assert view.pointing(550, WHOLE).window == (500, 600)


@pytest.mark.parametrize(
    ("view", "words"),
    [
        (View(), []),
        (View(cursor=12), []),
        (View(window=(10, 50), smoothing=0.97), ["steps 10–50", "smoothed 0.97"]),
        (View(fitted=True, log=True, across=TOKENS), ["fitted", "log scale", "by tokens"]),
    ],
)
def test_what_is_unusual_is_said(view: View, words: list[str]) -> None:
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
def test_no_keys_lead_out_of_the_run(newest: int, room: int, moves: list[tuple[str, float]]) -> None:
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
