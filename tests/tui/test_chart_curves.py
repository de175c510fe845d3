"""Several curves, points, log scales, windows and cursors in one drawing."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from launcher.metrics.records import StepRecord
from launcher.metrics.store import Series, SeriesStore
from tui.kit.charts.lens import Lens
from tui.kit.charts.view import ACROSS, SMOOTHINGS, View
from tui.kit.drawing.line_chart import GUTTER, draw
from tui.kit.drawing.plot import Curve, Limit, Mark, Plot
from tui.kit.drawing.rows import change, width
from tui.kit.drawing.scale import log_scale

ANY = st.one_of(st.floats(), st.sampled_from([math.nan, math.inf, -math.inf, 0.0, 1.0, -1.0, 1e-300, 1e300]))


def series(values: list[float]) -> Series:
    made = Series()
    for step, value in enumerate(values, 1):
        made.append(step, value)
    return made


def picture(shown: Plot, columns: int = 40, rows: int = 8) -> list[str]:
    return ["".join(text for text, _ in row) for row in draw(shown, columns, rows)]


def dots(line: str) -> int:
    return sum(bin(ord(char) - 0x2800).count("1") for char in line if 0x2800 <= ord(char) < 0x2900)


VIEWS = st.builds(
    View,
    window=st.one_of(st.none(), st.tuples(st.integers(0, 300), st.integers(4, 300)).map(lambda w: (w[0], w[0] + w[1]))),
    follows=st.booleans(),
    fitted=st.booleans(),
    smoothing=st.sampled_from(SMOOTHINGS),
    log=st.booleans(),
    across=st.sampled_from(ACROSS),
    cursor=st.one_of(st.none(), st.integers(0, 400)),
)


@pytest.mark.slow
@settings(max_examples=200)
@given(st.lists(st.tuples(ANY, ANY, ANY), max_size=120), st.integers(0, 60), st.integers(0, 14), VIEWS)
def test_any_values_at_any_size_through_any_view(
    values: list[tuple[float, float, float]], columns: int, rows: int, view: View
) -> None:
    store, lens = SeriesStore(), Lens()
    for step, (t, value, tokens) in enumerate(values, 1):
        store.add(StepRecord(step, t, None, {"a": value, "b": tokens, "perf/total_num_tokens": tokens}))
    curves = [Curve(found, label=key, sign=key) for key in ("a", "b") if (found := store.get(key))]
    points = [Curve(curve.points, "point", points_only=True) for curve in curves[1:]]
    lens.view = view
    shown = lens.look(
        Plot(
            "a",
            [],
            [*curves, *points],
            limits=[Limit(0.5, reach=True, edge=True, label="WARN")],
            marks=[Mark(3, "▲", "warn")],
        ),
        store,
        None,
    )
    shown.behind = Curve(curves[-1].points, "raw", "parent", "░", dash="# ") if curves else None
    drawn = draw(shown, columns, rows)
    assert len(drawn) == (rows if columns else 0)
    assert all(width(row) == columns for row in drawn)


def test_a_legend_names_curves_when_there_are_two() -> None:
    one = Curve(series([0.1, 0.9]), label="first run", sign="A")
    two = Curve(series([0.5, 0.4]), "curve-2", label="second run", sign="B")
    assert "first run" not in " ".join(picture(Plot("reward", curves=[one])))
    lines = picture(Plot("reward", curves=[one, two]))
    assert lines[1].split() == ["A", "first", "run", "B", "second", "run"]
    roles = {text.strip(): role for text, role in draw(Plot("reward", curves=[one, two]), 40, 8)[1]}
    assert roles["A first run"] == "curve" and roles["B second run"] == "curve-2"
    assert "first" not in " ".join(picture(Plot("reward", curves=[one, two]), rows=5))  # curves need the room


def test_the_sign_of_a_curve_stands_at_its_newest_point() -> None:
    lines = picture(Plot("reward", curves=[Curve(series([0.0, 1.0]), sign="A")], last=2))
    assert lines[1].rstrip().endswith("A") and sum(line.count("A") for line in lines) == 1


def test_points_are_not_joined() -> None:
    alone = Plot("reward", curves=[Curve(series([0.0, 0.5, 1.0]), "point", sign="○", points_only=True)])
    drawn = "".join(picture(alone))
    assert drawn.count("○") == 3 and dots(drawn) == 0


def test_on_a_log_scale_equal_factors_are_equal_distances() -> None:
    values = [10.0 ** (step / 20) for step in range(1, 61)]
    lines = picture(Plot("loss", curves=[Curve(series(values))], last=60, log=True), 39, 9)
    tops = [min(row for row in range(1, 8) if dots(lines[row][x])) for x in range(GUTTER + 1, 37)]
    assert tops == sorted(tops, reverse=True)
    assert len({tops.count(row) for row in set(tops)}) <= 3  # a straight line spends alike on each row
    assert [line[:GUTTER].strip("│ ") for line in lines[1:-1] if line[:GUTTER].strip("│ ")] == ["1k", "100", "10", "1"]


def test_a_log_scale_without_a_value_above_0_says_so() -> None:
    shown = Plot("loss", curves=[Curve(series([0.0, -1.0]))], log=True)
    assert "no value above 0" in " ".join(picture(shown, columns=60))
    mixed = Plot("loss", curves=[Curve(series([-1.0, 1.0, 10.0, 0.0]))], log=True)
    assert dots("".join(picture(mixed))) > 0


@pytest.mark.parametrize(
    ("across", "ends"), [("step", ("391", "395")), ("time", ("2d 17h", "+40m")), ("tokens", ("1.04G", "+400k"))]
)
def test_the_ends_of_a_short_window_late_in_a_run_differ(across: str, ends: tuple[str, str]) -> None:
    lens, store = Lens(), SeriesStore()
    for step in range(1, 401):
        tokens = 1e5 if step > 1 else 1e9
        store.add(StepRecord(step, 600.0 * step, None, {"a": 0.5, "perf/total_num_tokens": tokens}))
    lens.view = View(window=(391, 395), across=across)
    lines = picture(lens.look(Plot("a", curves=[Curve(store.get("a") or series([]))]), store, None))
    labels = lines[-1].strip().strip("─").split("─")  # the last step is as wide as the others
    assert (labels[0], labels[-1]) == ends


@given(st.floats(1e-98, 1e290), st.floats(1e-98, 1e290), st.integers(1, 40))
def test_a_log_range_holds_its_values(a: float, b: float, rows: int) -> None:
    low, high, ticks = log_scale(a, b, rows)
    assert low <= min(a, b) * (1 + 1e-9) and high >= max(a, b) * (1 - 1e-9)
    assert list(ticks) == sorted(set(ticks)) and (ticks[0], ticks[-1]) == (low, high)
    assert len(ticks) <= max((rows + 1) // 2, 2)


def test_a_window_shows_its_steps_alone() -> None:
    shown = Plot("loss", curves=[Curve(series([9.0] * 100 + [1.0, 2.0] * 50))], first=100, last=200)
    shown.first = 101
    lines = picture(shown)
    assert not any(line.strip().startswith("9") for line in lines)
    assert lines[-1].strip().startswith("101─") and lines[-1].endswith("─200")
    empty = Plot("loss", curves=[Curve(series([1.0]))], first=50, last=90)
    assert "no value in this range" in " ".join(picture(empty))


def test_the_cursor_is_an_upright_line_that_covers_no_curve() -> None:
    shown = Plot("loss", curves=[Curve(series([0.5] * 20))], last=20)
    before = picture(shown)
    shown.cursor = 10
    after = picture(shown)
    at = GUTTER + 10 * 33 // 21
    assert after[-1][at : at + 3] == "↑10" and any("┊ 0.500 " in line for line in after)
    assert [line[at] for line in after[1:-1]].count("┊") == 5
    assert [dots(line) for line in before] == [dots(line) for line in after]


def test_two_runs_can_be_told_apart_without_color() -> None:
    """The dashes of the upper curve leave cells to the lower one; its spike has no gap."""
    flat, spiked = series([0.5] * 40), series([0.5] * 20 + [1.0] + [0.5] * 19)
    drawn = draw(Plot("loss", curves=[Curve(flat), Curve(flat, "curve-2", dash="### ")], last=40), 40, 8)
    assert {role for row in drawn[1:-1] for text, role in row if dots(text)} == {"curve", "curve-2"}
    for phase in ("### ", "## #", "# ##", " ###"):
        lines = picture(Plot("loss", curves=[Curve(spiked, dash=phase)], last=40))
        assert all(dots(line[GUTTER:]) for line in lines[1:6])


def test_the_cursor_moves_off_a_chart_that_does_not_show_it() -> None:
    shown = Plot("loss", curves=[Curve(series([0.5] * 20))], last=20)
    before = picture(shown)
    shown.cursor = 400
    assert picture(shown) == before


def test_the_average_covers_the_raw_curve() -> None:
    low, high = series([0.0, 1.0] * 20), series([0.5] * 40)
    drawn = draw(Plot("loss", curves=[Curve(low, "raw"), Curve(high)], last=40), 40, 8)
    middle = [row for row in drawn[1:-1] if any(role == "curve" for _, role in row)]
    assert len(middle) == 1
    assert all(role in ("curve", "axis") for text, role in middle[0] if dots(text))


def test_a_curve_behind_is_named_or_left_out_and_does_not_change_the_range() -> None:
    own, parent = Curve(series([0.4] * 20 + [0.5] * 20)), Curve(series([0.45] * 20 + [9.0] * 20), "raw", "parent", "P")
    shown, alone = (
        Plot("loss", [[("0.5", "title")], [("best 0.4", "dim")]], [own], last=40, behind=behind)
        for behind in (parent, None)
    )
    assert picture(shown)[0].endswith("0.5 best 0.4 P parent ")
    assert [line[:GUTTER] for line in picture(shown)] == [line[:GUTTER] for line in picture(alone)]
    faint = [sum(dots(text) for text, role in row if role == "raw") for row in draw(shown, 40, 8)]
    assert 0 < sum(map(bool, faint)) < 3, "what is out of the range is not drawn"
    assert picture(shown, 15) == picture(alone, 15), "without room for its name"


@pytest.mark.parametrize("view", [View(smoothing=0.9), View(log=True), View(across="time")])
def test_one_more_step_changes_few_cells_in_every_view(view: View) -> None:
    lens, store = Lens(), SeriesStore()
    lens.view = view

    def shown() -> list[list[tuple[str, str]]]:
        found = store.get("a")
        assert found is not None
        return draw(lens.look(Plot("a", curves=[Curve(found)]), store, 1160), 39, 7)

    for step in range(1, 206):
        value = 0.2 + 0.5 * (1 - math.exp(-step / 60)) + 0.02 * math.sin(step)
        store.add(StepRecord(step, 1000.0 + 2 * step, None, {"a": value}))
    before = shown()
    store.add(StepRecord(206, 1412.0, None, {"a": 0.7}))
    painted = [change(old, new) for old, new in zip(before, shown(), strict=True)]
    assert sum(length for _, length in filter(None, painted)) <= 6
