"""Lines of lists: curves, shortened names, ranking; cursors that the same keys move; cells of rows, cut and changed."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pilots import words
from rich.cells import cell_len
from textual.screen import Screen

from launcher.metrics.store import Series
from tui.kit.drawing.glyphs import SPARK, to_ascii
from tui.kit.drawing.rows import cells, change, crop, fit, joined, put, shorten, spread, width
from tui.kit.drawing.trace import spark
from tui.kit.matching import letters, ranked
from tui.kit.metric_rows import metric_row
from tui.kit.widgets.lists import LineTable, MetricTable, ResponseTable, RunTable
from tui.pages.editor.form import FormLines

KEYS = [
    "actor/entropy",
    "actor/entropy_loss",
    "actor/grad_norm",
    "actor/kl_loss",
    "actor/pg_loss",
    "critic/grad_norm",
    "critic/score/mean",
    "perf/throughput",
    "response_length/mean",
    "timing_s/gen",
]


def series(*values, every=1):
    made = Series()
    for index, value in enumerate(values):
        made.append((index + 1) * every - 1, value)
    return made


def drawn(points, last, columns):
    return words([spark(points, last, columns)])


@pytest.mark.parametrize(
    ("points", "last", "curve"),
    [
        (series(*range(8)), 7, "⣀⡠⠔⠒"),
        (series(*range(8)), 15, "⣀⡠⠔⠒    "),
        (series(3, 3, 3, 3), 3, "⠤⠤⠤⠤⠤⠤"),
        (series(0, math.nan, 7), 2, "⡀ ⠐"),
        (series(*[1.0] * 77, 9.0, *[1.0] * 22), 99, "⣀⣀⣀⣀⣀⣀⣀⡰⣄⣀"),  # a spike of one step stays
        (series(*[1.0] * 77, -9.0, *[1.0] * 22), 99, "⠒⠒⠒⠒⠒⠒⠒⢢⠖⠒"),
        (series(0, 1, 2, every=5), 19, "    ⣀⣀⣀⠤⠤⠤⠤⠤⠒⠒⠒     "),  # of every fifth step, without holes
        (series(math.nan, math.inf), 9, " " * 10),
        (Series(), 9, " " * 10),
    ],
)
def test_a_curve_goes_from_its_lowest_to_its_highest_value(points, last, curve):
    assert drawn(points, last, len(curve)) == curve


@given(st.lists(st.floats(), max_size=60), st.integers(0, 80), st.integers(1, 40))
def test_a_curve_is_as_wide_as_asked_and_does_not_touch_that_of_the_row_above(values, more, columns):
    line = drawn(series(*values), max(len(values) + more - 1, 0), columns)
    assert cell_len(line) == columns and not any(ord(char) - 0x2800 & 0x09 for char in line if char != " ")


@given(st.text(max_size=70), st.lists(st.floats(), min_size=1, max_size=5), st.integers(44, 200))
def test_a_row_is_as_wide_as_the_table(key, values, columns):
    assert width(metric_row(key, series(*values), 10, pinned=True, columns=columns)) == columns


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("grad", ["actor/grad_norm", "critic/grad_norm"]),
        ("cgrad", ["critic/grad_norm"]),
        ("entropy", ["actor/entropy", "actor/entropy_loss"]),
        ("agn", ["actor/grad_norm"]),
        ("ENTLOSS", ["actor/entropy_loss"]),
        ("tput", ["perf/throughput"]),
        ("loss pg", ["actor/pg_loss"]),
        ("reference", ["actor/kl_loss"]),
        ("nats loss", ["actor/entropy_loss", "actor/kl_loss"]),
        ("highest", []),
        ("zzz", []),
        ("  ", KEYS),
    ],
)
def test_the_best_match_comes_first(query, first):
    assert ranked(KEYS, query)[: len(first) or None] == first


@given(st.text("abc/_", max_size=30), st.text("abc", min_size=1, max_size=6))
def test_letters_must_be_there_in_their_order(name, word):
    rest = iter(name)
    if letters(name, word):
        assert all(letter in rest for letter in word)
    else:
        assert word not in name


NUMBERS = [str(number) for number in range(20)]
MOVES = [("end", "19"), ("up", "18"), ("k", "17"), ("home", "0"), ("down", "1"), ("j", "2")]
PAGES = [("pagedown", "10"), ("pageup", "2")]


@pytest.mark.parametrize(
    ("kind", "moves"),
    [(kind, MOVES + PAGES) for kind in (MetricTable, RunTable, FormLines)]
    + [(ResponseTable, [*MOVES, ("pagedown", "2"), ("pageup", "2")])],  # a page is one of the answer's text
)
async def test_the_cursor_moves(make, kind, moves):
    app, table = make.app(), kind(lambda key, columns: [(f" {key}", "text")], "nothing")
    async with make.open(app, size=(40, 10)) as user:
        await app.push_screen(Screen())
        await app.screen.mount(table)
        table.show(NUMBERS)
        table.focus()
        found = []
        for key, _ in moves:
            await user(key)
            found.append((key, table.cursor))
    assert found == moves


def test_arrows_say_that_there_are_more_lines_and_cut_none():
    table = LineTable(lambda key, columns: [(f"  {key}", "text")], "nothing")
    table.show([f"line {number}" for number in range(9)])
    for cursor, shown in (("line 0", "012↓"), ("line 5", "↑34↓"), ("line 8", "↑678")):
        table.cursor = cursor
        assert "".join(row[-1] for row in words(table.draw(12, 4)).split("\n")) == shown
    table = LineTable(lambda key, columns: [(key.rjust(columns), "text")], "nothing")
    table.show([f"line {number}" for number in range(9)])
    assert words(table.draw(12, 2)).split("\n") == ["❯    line 0", "     line 1↓"]


TEXT = st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=12)
ROWS = st.lists(st.tuples(TEXT, st.sampled_from(["text", "dim", "warn"])), max_size=5)
PLAIN = st.lists(st.tuples(st.text(alphabet="ab 中●⠓", max_size=9), st.sampled_from(["text", "dim"])), max_size=4)


@given(ROWS, st.integers(0, 40))
def test_a_fitted_row_takes_exactly_its_cells(row, limit):
    assert width(fit(row, limit)) == limit


@given(PLAIN, st.integers(0, 40))
def test_a_cropped_row_is_never_wider_and_says_that_it_was_cut(row, limit):
    cropped = crop(row, limit)
    assert width(cropped) <= limit
    if 0 < limit < width(row):
        assert "".join(text for text, _ in cropped).endswith("…")


@given(PLAIN, PLAIN, st.integers(1, 40))
def test_spread_keeps_the_right_side_whole(left, right, limit):
    both = "".join(text for text, _ in spread(left, right, limit))
    if width(right) <= limit:
        assert both.endswith("".join(text for text, _ in right))


@given(PLAIN, PLAIN, st.integers(1, 30))
def test_repainting_the_changes_gives_the_new_row(old, new, limit):
    before, after = cells(fit(old, limit)), cells(fit(new, limit))
    start, length = change(fit(old, limit), fit(new, limit)) or (0, 0)
    assert [*before[:start], *after[start : start + length], *before[start + length :]] == after


def test_rows_are_shortened_spread_put_joined_and_compared_by_their_cells():
    assert shorten("actor/lr", 8) == "actor/lr"
    assert shorten("training/off_policy/trajectory_staleness/mean", 24) == "trainin…y_staleness/mean"
    assert [len(shorten("abcdefgh", room)) for room in (1, 2, 5)] == [1, 2, 5]
    assert [to_ascii(drawn(series(*values), 9, 5)) for values in (range(10), [1.0] * 10)] == ["__-:'", "-----"]
    assert to_ascii(SPARK).isascii() and len(set(to_ascii(SPARK))) > 3
    blank = spread([("curve   ", "text"), ("  ", "dim")], [("v", "dim")], 7)  # is cut without an ellipsis
    assert blank == [("curve", "text"), (" ", "text"), ("v", "dim")]
    both = spread([("31 lines with 'Training'", "notice")], [("line 1,210 ", "dim")], 30)
    assert words([both]) == "31 lines with 'Tr… line 1,210 "
    assert joined(put([("ab", "title")], 5, [("x", "dim")])) == [("ab   ", "title"), ("x", "dim")]
    assert width(put([("abcdef", "text")], 3, [("x", "dim")], least=2)) == 9
    assert change([("step 62/80", "text")], [("step", "text"), (" 62/80", "text")]) is None
    assert change([("step 62/80  77 %", "text")], [("step 63/80  78 %", "text")]) == (6, 8)
    assert change([("WARN", "warn")], [("WARN", "critical")]) == (0, 4)
    assert joined([("a", "title"), ("  ", "text"), ("b", "title")]) == [
        ("a  b", "title")
    ]  # blanks take the role before
    assert joined([(" ", "text"), ("b", "title"), (" ", "dim")]) == [(" b ", "title")]
    assert cells([("中a", "text")]) == [("中", "text"), ("", "text"), ("a", "text")]
