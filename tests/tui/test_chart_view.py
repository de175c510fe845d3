"""The view of a screen's charts: zoom, pan and cursor stay inside the run, whatever is pressed."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.charts.view import TOKENS, View

WHOLE = (0, 1160)


def test_zooming_keeps_the_newest_step_in_its_place() -> None:
    once = View().zoomed(0.5, WHOLE, newest=290)
    assert once.window == (145, 725)
    assert (290 - 145) / 580 == 290 / 1160
    assert once.zoomed(2, WHOLE, newest=290) == View()


def test_zooming_goes_around_the_cursor() -> None:
    found = View(cursor=1000).zoomed(0.5, WHOLE, newest=290).window
    assert found == (500, 1080)
    assert (1000 - 500) / 580 == 1000 / 1160


def test_a_window_at_the_end_moves_on_with_the_run_and_others_stay() -> None:
    view = View(cursor=200).zoomed(0.25, (0, 200), newest=200)
    assert view.window == (150, 200) and view.at_end
    assert view.shown((0, 300)) == (250, 300)
    assert view.panned(-0.5, (0, 200)).shown((0, 300)) == (125, 175)


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


@given(st.integers(1, 5000), MOVES)
def test_no_keys_lead_out_of_the_run(last: int, moves: list[tuple[str, float]]) -> None:
    view, whole = View(), (0, last)
    for move, by in moves:
        if move == "zoom":
            view = view.zoomed(by, whole, newest=whole[1])
        elif move == "pan":
            view = view.panned(by, whole)
        elif move == "point":
            view = view.pointing(min(int(by), whole[1]), whole)
        elif move == "grow":
            whole = (0, whole[1] + int(by))
        else:
            view = replace(view, cursor=None)
        first, final = view.shown(whole)
        assert whole[0] <= first < final <= whole[1]
        if move == "point":
            assert view.cursor is not None and first <= view.cursor <= final
