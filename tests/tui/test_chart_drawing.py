"""The chart as rows: any values, size and view; spikes stay, gaps show, one step changes few cells."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pilots import words

from launcher.metrics.records import StepRecord
from launcher.metrics.store import Series, SeriesStore
from tui.kit.charts.lens import Lens
from tui.kit.charts.view import ACROSS, SMOOTHINGS, View
from tui.kit.drawing.line_chart import GUTTER, draw
from tui.kit.drawing.plot import Curve, Limit, Mark, Plot
from tui.kit.drawing.rows import TINTED, change, width
from tui.kit.drawing.scale import step_limit

ANY = st.one_of(st.floats(), st.sampled_from([math.nan, math.inf, -math.inf, 0.0, 1.0]))


def series(values):
    made = Series()
    for step, value in enumerate(values, 1):
        made.append(step, value)
    return made


def plot(values, **more):
    curve = series(values)
    whole = {"title": "reward", "last": step_limit(len(curve), None), **more}
    return Plot(whole.pop("title"), [[("0.5", "title")]], [Curve(curve)], **whole)


def picture(shown, columns=40, rows=7):
    return words(draw(shown, columns, rows)).split("\n")


def parts(line):
    """What stands on the x axis."""
    return [part for part in line.strip().split("─") if part]


def dots(line):
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
def test_any_values_at_any_size_through_any_view(values, columns, rows, view):
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
            limits=[Limit(0.5, reach=True, beyond=">", label="WARN"), Limit(math.nan, label="b", beyond="<")],
            marks=[Mark(3, "▲", "warn")],
        ),
        store,
        None,
    )
    shown.behind = Curve(curves[-1].points, "raw", "parent", "░", dash="# ") if curves else None
    drawn = draw(shown, columns, rows)
    assert len(drawn) == (rows if columns else 0)
    assert all(width(row) == columns for row in drawn) and all(role for row in drawn for _, role in row)


def test_one_point_a_constant_and_extremes_are_drawn_and_what_is_not_finite_is_said():
    for values in ([0.3], [0.3] * 50, [-1e308, 1e308], [5e-324, 0.0]):
        assert sum(dots(line) for line in picture(plot(values))) > 0
    for values in ([], [math.nan], [math.nan, math.inf, -math.inf]):
        assert "no finite value yet" in " ".join(picture(plot(values)))


def test_a_nan_leaves_a_gap_and_a_spike_of_one_step_among_thousands_stays():
    def painted(values):
        return {i for line in picture(plot(values, last=30)) for i, char in enumerate(line) if dots(char)}

    whole, holed = painted([0.5] * 30), painted([0.5] * 10 + [math.nan] * 10 + [0.5] * 10)
    assert whole == set(range(GUTTER + 1, GUTTER + 32)) and whole - holed == set(range(GUTTER + 11, GUTTER + 22))
    top = picture(plot([1.0] * 2500 + [9.0] + [1.0] * 2499, last=5000))[1]
    assert dots(top) > 0 and top.strip().startswith("10")


def test_marks_and_round_values_stand_on_the_x_axis_and_never_on_each_other():
    base = picture(plot([0.1] * 62, last=80, marks=[Mark(40, "▲", "warn"), Mark(80, "✖", "critical")]))[-1]
    assert base == " " * GUTTER + "0───────────────▲─────────────✖80" and base.index("▲") == GUTTER + 40 * 33 // 81
    assert parts(picture(plot([0.1] * 26, last=26))[-1]) == ["0", "10", "20", "26"]
    assert parts(picture(plot([0.1] * 26, last=26), 18)[-1]) == ["0", "26"]
    many = [Mark(step, "○", "point", "validation") for step in range(60)]  # too many of a kind are left out
    assert plot([0.1] * 60, marks=many[::10]).seen == many[::10]
    assert plot([0.1] * 60, marks=[*many, Mark(3, "▲", "warn")]).seen == [Mark(3, "▲", "warn")]


def test_title_value_unit_and_note_give_way_part_by_part():
    line = picture(plot([float(step) for step in range(40)]), 40, 1)[0]
    assert line.startswith(" reward ⢀⣀") and line.endswith(" 0.5 ") and dots(line) > 30
    assert picture(plot([0.1] * 9, unit="nats"))[-1].startswith("  nats 0─")
    assert picture(plot([0.1] * 9, unit="nats"), rows=3)[0].startswith(" reward nats ")
    assert picture(plot([0.1] * 9, unit="versions"))[0].startswith(" reward versions ")
    shown = Plot("throughput", [[("1702 tok/s", "title")], [("13.3 s/step", "dim")]])
    assert picture(shown, 40, 1) == [" throughput      1702 tok/s 13.3 s/step "]
    assert picture(shown, 30, 1) == [" throughput        1702 tok/s "] and picture(shown, 12, 1) == [" throughput "]
    lines = picture(Plot("KL to reference", note="no KL in this run"))
    assert "no KL in this run" in lines[3] and not any("│" in line for line in lines)


@pytest.mark.parametrize(
    ("values", "limits", "there", "absent"),
    [
        ([0.1, 0.9], [Limit(0.5)], "╌", "WARN"),
        ([0.1, 0.9], [Limit(5.0)], "reward", "╌"),
        ([0.1, 0.4], [Limit(0.9, "warn", "WARN > 0.9", reach=True)], "╌ WARN > 0.9 ╌", "↑"),
        ([0.9] * 9 + [0.1], [Limit(0.9, "warn", "WARN > 0.9")], "reward", "WARN"),  # no room beside the curve
    ],
)
def test_a_limit_shows_inside_the_range_which_may_reach_for_it(values, limits, there, absent):
    lines = picture(plot(values, limits=limits))
    assert any(there in line for line in lines) and not any(absent in line for line in lines)
    far = [Limit(9.0, "warn", "WARN > 9", beyond=">"), Limit(-5.0, "warn", "WARN < -5")]
    lines = picture(plot([0.1, 0.4], limits=far))
    assert lines[0].endswith(" 0.5 ↑ WARN > 9 ") and not any("╌" in line or "-5" in line for line in lines)


def test_what_is_beyond_a_limit_is_on_a_tint_or_behind_a_line_and_the_limit_is_named_whole():
    limit = Limit(0.5, "warn", "WARN > 0.5", beyond=">", passed=True)
    shown = plot([0.1 * step for step in range(10)], limits=[limit])
    tinted = draw(shown, 40, 7, tinted=True)
    beyond = [any(role.endswith(TINTED) for _, role in row) for row in tinted]
    assert beyond == [False, True, True, False, False, False, False] and "WARN > 0.5" in words(tinted)
    lines = picture(shown)
    assert [line.rstrip()[-1] for line in lines if "╌" in line] == ["!"] and any("WARN > 0.5" in line for line in lines)
    full = plot([0.5, 0.51] * 40, limits=[limit], flag=("▲ KL-4", "warn"), title="a long name of a metric")
    assert any("WARN > 0.5" in line for line in picture(full, 40, 3))
    assert "▲ KL-4 a lo…" in picture(full, 40, 3)[0] and " 0.5 " in picture(full, 40, 3)[0]


def test_several_curves_keep_their_roles_and_a_legend_names_them():
    shown = plot([0.0] * 20)
    shown.curves.append(Curve(series([1.0] * 20), "warn"))
    assert {role for row in draw(shown, 40, 7)[1:-1] for text, role in row if dots(text)} == {"curve", "warn"}
    one = Curve(series([0.1, 0.9]), label="first run", sign="A")
    two = Curve(series([0.5, 0.4]), "curve-2", label="second run", sign="B")
    assert "first run" not in " ".join(picture(Plot("reward", curves=[one])))
    lines = picture(Plot("reward", curves=[one, two]), rows=8)
    assert lines[1].split() == ["A", "first", "run", "B", "second", "run"]
    roles = {text.strip(): role for text, role in draw(Plot("reward", curves=[one, two]), 40, 8)[1]}
    assert roles["A first run"] == "curve" and roles["B second run"] == "curve-2"
    assert "first" not in " ".join(picture(Plot("reward", curves=[one, two]), rows=5))  # curves need the room
    lines = picture(Plot("reward", curves=[Curve(series([0.0, 1.0]), sign="A")], last=2))
    assert lines[1].rstrip().endswith("A") and sum(line.count("A") for line in lines) == 1  # at its newest point
    alone = Curve(series([0.0, 0.5, 1.0]), "point", sign="○", points_only=True)
    drawn = "".join(picture(Plot("reward", curves=[alone])))
    assert drawn.count("○") == 3 and dots(drawn) == 0  # points are not joined


def test_on_a_log_scale_equal_factors_are_equal_distances():
    values = [10.0 ** (step / 20) for step in range(1, 61)]
    lines = picture(Plot("loss", curves=[Curve(series(values))], last=60, log=True), 39, 9)
    tops = [min(row for row in range(1, 8) if dots(lines[row][x])) for x in range(GUTTER + 1, 37)]
    assert tops == sorted(tops, reverse=True)
    assert len({tops.count(row) for row in set(tops)}) <= 3  # a straight line spends alike on each row
    assert [line[:GUTTER].strip("│ ") for line in lines[1:-1] if line[:GUTTER].strip("│ ")] == ["1k", "100", "10", "1"]
    shown = Plot("loss", curves=[Curve(series([0.0, -1.0]))], log=True)
    assert "no value above 0" in " ".join(picture(shown, columns=60))
    mixed = Plot("loss", curves=[Curve(series([-1.0, 1.0, 10.0, 0.0]))], log=True)
    assert dots("".join(picture(mixed))) > 0


@pytest.mark.parametrize(
    ("across", "ends"), [("step", ("391", "395")), ("time", ("2d 17h", "+40m")), ("tokens", ("1.04G", "+400k"))]
)
def test_the_ends_of_a_short_window_late_in_a_run_differ(across, ends):
    lens, store = Lens(), SeriesStore()
    for step in range(1, 401):
        tokens = 1e5 if step > 1 else 1e9
        store.add(StepRecord(step, 600.0 * step, None, {"a": 0.5, "perf/total_num_tokens": tokens}))
    lens.view = View(window=(391, 395), across=across)
    lines = picture(lens.look(Plot("a", curves=[Curve(store.get("a") or series([]))]), store, None))
    labels = lines[-1].strip().strip("─").split("─")  # the last step is as wide as the others
    assert (labels[0], labels[-1]) == ends


def test_a_window_shows_its_steps_alone():
    shown = Plot("loss", curves=[Curve(series([9.0] * 100 + [1.0, 2.0] * 50))], first=101, last=200)
    lines = picture(shown)
    assert not any(line.strip().startswith("9") for line in lines)
    assert lines[-1].strip().startswith("101─") and lines[-1].endswith("─200")
    empty = Plot("loss", curves=[Curve(series([1.0]))], first=50, last=90)
    assert "no value in this range" in " ".join(picture(empty))


def test_the_cursor_is_an_upright_line_that_covers_no_curve_and_stays_off_what_does_not_show_it():
    shown = Plot("loss", curves=[Curve(series([0.5] * 20))], last=20)
    before = picture(shown, rows=8)
    shown.cursor = 400
    assert picture(shown, rows=8) == before
    shown.cursor = 10
    after = picture(shown, rows=8)
    at = GUTTER + 10 * 33 // 21
    assert after[-1][at : at + 3] == "↑10" and any("┊ 0.500 " in line for line in after)
    assert [line[at] for line in after[1:-1]].count("┊") == 5
    assert [dots(line) for line in before] == [dots(line) for line in after]


def test_two_runs_can_be_told_apart_without_color():
    """The dashes of the upper curve leave cells to the lower one; its spike has no gap."""
    flat, spiked = series([0.5] * 40), series([0.5] * 20 + [1.0] + [0.5] * 19)
    drawn = draw(Plot("loss", curves=[Curve(flat), Curve(flat, "curve-2", dash="### ")], last=40), 40, 8)
    assert {role for row in drawn[1:-1] for text, role in row if dots(text)} == {"curve", "curve-2"}
    for phase in ("### ", "## #", "# ##", " ###"):
        lines = picture(Plot("loss", curves=[Curve(spiked, dash=phase)], last=40))
        assert all(dots(line[GUTTER:]) for line in lines[1:6])


def test_the_average_covers_the_raw_curve():
    low, high = series([0.0, 1.0] * 20), series([0.5] * 40)
    drawn = draw(Plot("loss", curves=[Curve(low, "raw"), Curve(high)], last=40), 40, 8)
    middle = [row for row in drawn[1:-1] if any(role == "curve" for _, role in row)]
    assert len(middle) == 1
    assert all(role in ("curve", "axis") for text, role in middle[0] if dots(text))


def test_a_curve_behind_is_named_or_left_out_and_does_not_change_the_range():
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


@pytest.mark.parametrize("view", [View(), View(smoothing=0.9), View(log=True), View(across="time")])
def test_one_more_step_changes_few_cells_in_every_view(view):
    lens, store = Lens(), SeriesStore()
    lens.view = view
    for step in range(1, 206):
        value = 0.2 + 0.5 * (1 - math.exp(-step / 60)) + 0.02 * math.sin(step)
        store.add(StepRecord(step, 1000.0 + 2 * step, None, {"a": value}))
    before = draw(lens.look(Plot("a", curves=[Curve(store.get("a"))]), store, 1160), 39, 7)
    store.add(StepRecord(206, 1412.0, None, {"a": 0.7}))
    after = draw(lens.look(Plot("a", curves=[Curve(store.get("a"))]), store, 1160), 39, 7)
    painted = [change(old, new) for old, new in zip(before, after, strict=True)]
    assert sum(length for _, length in filter(None, painted)) <= (6 if view != View() else 4)
