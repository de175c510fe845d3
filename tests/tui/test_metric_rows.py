"""Lines of the table of metrics: curves, shortened names, ranking."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from launcher.metrics.store import Series
from tui.kit.drawing.glyphs import SPARK, to_ascii
from tui.kit.drawing.rows import width
from tui.kit.drawing.trace import spark
from tui.kit.matching import letters, ranked
from tui.kit.metric_rows import metric_row, shorten

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


def series(*values: float, every: int = 1) -> Series:
    made = Series()
    for index, value in enumerate(values):
        made.append((index + 1) * every - 1, value)
    return made


def drawn(points: Series, last: int, columns: int) -> str:
    return "".join(part for part, _ in spark(points, last, columns))


def test_a_curve_goes_from_its_lowest_to_its_highest_value() -> None:
    assert drawn(series(*range(8)), 7, 4) == "⣀⡠⠔⠒"
    assert drawn(series(*range(8)), 15, 8) == "⣀⡠⠔⠒    "
    assert drawn(series(3, 3, 3, 3), 3, 6) == "⠤⠤⠤⠤⠤⠤"
    assert drawn(series(0, math.nan, 7), 2, 3) == "⡀ ⠐"


@given(st.lists(st.floats(), max_size=60), st.integers(1, 40))
def test_the_curves_of_neighbouring_rows_do_not_touch(values: list[float], columns: int) -> None:
    """The upper row of dots is free."""
    line = drawn(series(*values), max(len(values) - 1, 0), columns)
    assert not any(ord(char) - 0x2800 & 0x09 for char in line if char != " ")


def test_a_spike_of_one_step_stays_in_either_direction() -> None:
    assert drawn(series(*[1.0] * 77, 9.0, *[1.0] * 22), 99, 10) == "⣀⣀⣀⣀⣀⣀⣀⡰⣄⣀"
    assert drawn(series(*[1.0] * 77, -9.0, *[1.0] * 22), 99, 10) == "⠒⠒⠒⠒⠒⠒⠒⢢⠖⠒"


def test_a_figure_of_every_fifth_step_has_no_holes() -> None:
    assert drawn(series(0, 1, 2, every=5), 19, 20) == "    ⣀⣀⣀⠤⠤⠤⠤⠤⠒⠒⠒     "


def test_values_without_a_finite_one_draw_nothing() -> None:
    assert drawn(series(math.nan, math.inf), 9, 10) == " " * 10
    assert drawn(Series(), 9, 10) == " " * 10


@given(st.lists(st.floats(), max_size=60), st.integers(0, 80), st.integers(1, 40))
def test_a_curve_is_as_wide_as_asked(values: list[float], more: int, columns: int) -> None:
    assert cell_len(drawn(series(*values), len(values) + more, columns)) == columns


@given(st.text(max_size=70), st.lists(st.floats(), min_size=1, max_size=5), st.integers(44, 200))
def test_a_row_is_as_wide_as_the_table(key: str, values: list[float], columns: int) -> None:
    assert width(metric_row(key, series(*values), 10, pinned=True, columns=columns)) == columns


def test_what_is_shortened_keeps_both_ends() -> None:
    assert shorten("actor/lr", 8) == "actor/lr"
    assert shorten("training/off_policy/trajectory_staleness/mean", 24) == "trainin…y_staleness/mean"
    assert [len(shorten("abcdefgh", room)) for room in (1, 2, 5)] == [1, 2, 5]


def test_lines_and_blocks_have_a_twin_in_ascii() -> None:
    assert [to_ascii(drawn(series(*values), 9, 5)) for values in (range(10), [1.0] * 10)] == ["__-:'", "-----"]
    assert to_ascii(SPARK).isascii() and len(set(to_ascii(SPARK))) > 3


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
    ],
)
def test_the_best_match_comes_first(query: str, first: list[str]) -> None:
    assert ranked(KEYS, query)[: len(first) or None] == first


def test_without_a_word_the_order_stays() -> None:
    assert ranked(KEYS[::-1], "  ") == KEYS[::-1]


@given(st.text("abc/_", max_size=30), st.text("abc", min_size=1, max_size=6))
def test_letters_must_be_there_in_their_order(name: str, word: str) -> None:
    rest = iter(name)
    if letters(name, word):
        assert all(letter in rest for letter in word)
    else:
        assert word not in name
