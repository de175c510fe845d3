"""The chart as rows: any size, any values; spikes stay, gaps show, one step changes few cells."""

import math
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from launcher.metrics.store import Series
from tui.kit.drawing.line_chart import GUTTER, draw
from tui.kit.drawing.plot import Curve, Limit, Mark, Plot
from tui.kit.drawing.rows import change, width
from tui.kit.drawing.scale import step_limit

ANY = st.one_of(st.floats(), st.sampled_from([math.nan, math.inf, -math.inf, 0.0, 1.0]))


def series(values: Iterable[float]) -> Series:
    made = Series()
    for step, value in enumerate(values, 1):
        made.append(step, value)
    return made


def plot(values: Iterable[float], **more: object) -> Plot:
    curve = series(values)
    last = step_limit(len(curve), None)
    return Plot("reward", [[("0.5", "title")]], [Curve(curve)], **{"last": last, **more})  # type: ignore[arg-type]


def picture(shown: Plot, columns: int = 40, rows: int = 7) -> list[str]:
    return ["".join(text for text, _ in row) for row in draw(shown, columns, rows)]


def dots(line: str) -> int:
    return sum(bin(ord(char) - 0x2800).count("1") for char in line if 0x2800 <= ord(char) < 0x2900)


@settings(max_examples=150)
@given(st.lists(ANY, max_size=200), st.integers(0, 60), st.integers(0, 12))
def test_any_values_at_any_size_fill_exactly_the_widget(values: list[float], columns: int, rows: int) -> None:
    shown = plot(values, limits=[Limit(0.5), Limit(7.0, label="WARN > 7", reach=True)], marks=[Mark(3, "▲", "warn")])
    drawn = draw(shown, columns, rows)
    assert len(drawn) == (rows if columns else 0)
    assert all(width(row) == columns for row in drawn)
    assert all(role for row in drawn for _, role in row)


@pytest.mark.parametrize("values", [[], [math.nan], [math.nan, math.inf, -math.inf]])
def test_without_a_finite_value_it_says_so(values: list[float]) -> None:
    assert "no finite value yet" in " ".join(picture(plot(values)))


@pytest.mark.parametrize("values", [[0.3], [0.3] * 50, [-1e308, 1e308], [5e-324, 0.0]])
def test_one_point_a_constant_and_extremes_are_drawn(values: list[float]) -> None:
    assert sum(dots(line) for line in picture(plot(values))) > 0


def test_a_nan_leaves_a_gap() -> None:
    whole = [0.5] * 30
    holed = [0.5] * 10 + [math.nan] * 10 + [0.5] * 10

    def painted(values: list[float]) -> list[int]:
        return [i for line in picture(plot(values, last=30)) for i, char in enumerate(line) if dots(char)]

    assert painted(whole) == list(range(GUTTER + 1, GUTTER + 32))
    assert set(painted(whole)) - set(painted(holed)) == set(range(GUTTER + 11, GUTTER + 22))


def test_a_spike_of_one_step_among_thousands_stays() -> None:
    values = [1.0] * 5000
    values[2500] = 9.0
    top = picture(plot(values, last=5000))[1]
    assert dots(top) > 0 and top.strip().startswith("10")


def test_one_more_step_changes_few_cells() -> None:
    steps = [0.2 + 0.5 * (1 - math.exp(-step / 60)) + 0.02 * math.sin(step) for step in range(1, 212)]
    before, after = (draw(plot(values, last=1160), 39, 7) for values in (steps[:-1], steps))
    painted = [change(old, new) for old, new in zip(before, after, strict=True)]
    assert sum(length for _, length in filter(None, painted)) <= 4


def test_marks_stand_at_their_step_and_never_on_a_label() -> None:
    base = picture(plot([0.1] * 62, last=80, marks=[Mark(40, "▲", "warn"), Mark(80, "✖", "critical")]))[-1]
    assert base == " " * GUTTER + "0───────────────▲─────────────✖80"
    assert base.index("▲") == GUTTER + 40 * 33 // 81


def test_round_values_stand_on_the_x_axis_where_there_is_room() -> None:
    assert picture(plot([0.1] * 26, last=26))[-1].split("─")[-1] == "26"
    assert [part for part in picture(plot([0.1] * 26, last=26))[-1].strip().split("─") if part] == [
        "0",
        "10",
        "20",
        "26",
    ]
    assert [part for part in picture(plot([0.1] * 26, last=26), 18)[-1].strip().split("─") if part] == ["0", "26"]


def test_marks_of_a_kind_that_are_too_many_are_left_out() -> None:
    many = [Mark(step, "○", "point", "validation") for step in range(60)]
    assert plot([0.1] * 60, marks=many[::10]).seen == many[::10]
    assert plot([0.1] * 60, marks=[*many, Mark(3, "▲", "warn")]).seen == [Mark(3, "▲", "warn")]


def test_a_chart_of_one_row_is_a_curve_between_its_title_and_its_value() -> None:
    line = picture(plot([float(step) for step in range(40)]), 40, 1)[0]
    assert line.startswith(" reward ⢀⣀") and line.endswith(" 0.5 ") and dots(line) > 30


def test_the_unit_is_below_the_y_axis_or_behind_the_title() -> None:
    assert picture(plot([0.1] * 9, unit="nats"))[-1].startswith("  nats 0─")
    assert picture(plot([0.1] * 9, unit="nats"), rows=3)[0].startswith(" reward nats ")
    assert picture(plot([0.1] * 9, unit="versions"))[0].startswith(" reward versions ")


def test_a_limit_shows_only_inside_the_range() -> None:
    assert any("╌" in line for line in picture(plot([0.1, 0.9], limits=[Limit(0.5)])))
    assert not any("╌" in line for line in picture(plot([0.1, 0.9], limits=[Limit(5.0)])))


def test_the_range_reaches_for_a_limit_and_names_it_where_there_is_room() -> None:
    lines = picture(plot([0.1, 0.4], limits=[Limit(0.9, "warn", "WARN > 0.9", reach=True)]))
    assert any("╌ WARN > 0.9 ╌" in line for line in lines)
    far = picture(
        plot(
            [0.1, 0.4],
            limits=[Limit(9.0, "warn", "WARN > 9", edge=True), Limit(5.0, "notice", "NOTICE > 5", edge=True)],
        )
    )
    assert "↑ NOTICE > 5" in far[1] and not any("╌" in line or "WARN" in line for line in far)
    crowded = picture(plot([0.9] * 9 + [0.1], limits=[Limit(0.9, "warn", "WARN > 0.9")]))
    assert not any("WARN" in line for line in crowded)


def test_a_note_takes_the_place_of_curves() -> None:
    lines = picture(Plot("KL to reference", note="no KL in this run"))
    assert "no KL in this run" in lines[3]
    assert not any("│" in line for line in lines)


def test_the_headline_gives_way_part_by_part() -> None:
    shown = Plot("throughput", [[("1702 tok/s", "title")], [("13.3 s/step", "dim")]])
    assert picture(shown, 40, 1) == [" throughput      1702 tok/s 13.3 s/step "]
    assert picture(shown, 30, 1) == [" throughput        1702 tok/s "]
    assert picture(shown, 12, 1) == [" throughput "]


def test_several_curves_keep_their_roles() -> None:
    shown = plot([0.0] * 20)
    shown.curves.append(Curve(series([1.0] * 20), "warn"))
    roles = {role for row in draw(shown, 40, 7)[1:-1] for text, role in row if dots(text)}
    assert roles == {"curve", "warn"}
