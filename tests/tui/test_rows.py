"""Rows: widths in cells, cuts, and which stretches of cells differ."""

from hypothesis import given
from hypothesis import strategies as st

from tui.kit.drawing.rows import Row, cells, change, crop, fit, joined, put, spread, width

TEXT = st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=12)
ROWS = st.lists(st.tuples(TEXT, st.sampled_from(["text", "dim", "warn"])), max_size=5)
PLAIN = st.lists(st.tuples(st.text(alphabet="ab 中●⠓", max_size=9), st.sampled_from(["text", "dim"])), max_size=4)


@given(ROWS, st.integers(0, 40))
def test_a_fitted_row_takes_exactly_its_cells(row: Row, limit: int) -> None:
    assert width(fit(row, limit)) == limit


@given(PLAIN, st.integers(0, 40))
def test_a_cropped_row_is_never_wider_and_says_that_it_was_cut(row: Row, limit: int) -> None:
    cropped = crop(row, limit)
    assert width(cropped) <= limit
    if 0 < limit < width(row):
        assert "".join(text for text, _ in cropped).endswith("…")


@given(PLAIN, PLAIN, st.integers(1, 40))
def test_spread_keeps_the_right_side_whole(left: Row, right: Row, limit: int) -> None:
    both = "".join(text for text, _ in spread(left, right, limit))
    if width(right) <= limit:
        assert both.endswith("".join(text for text, _ in right))


def test_blanks_at_the_end_are_cut_without_an_ellipsis() -> None:
    assert spread([("curve   ", "text"), ("  ", "dim")], [("v", "dim")], 7) == [
        ("curve", "text"),
        (" ", "text"),
        ("v", "dim"),
    ]


def test_what_is_cut_keeps_a_blank_before_the_right_side() -> None:
    both = spread([("31 lines with 'Training'", "notice")], [("line 1,210 ", "dim")], 30)
    assert "".join(text for text, _ in both) == "31 lines with 'Tr… line 1,210 "


def test_put_goes_to_its_column_or_behind_what_is_there() -> None:
    assert joined(put([("ab", "title")], 5, [("x", "dim")])) == [("ab   ", "title"), ("x", "dim")]
    assert width(put([("abcdef", "text")], 3, [("x", "dim")], least=2)) == 9


@given(PLAIN, PLAIN, st.integers(1, 30))
def test_repainting_the_changes_gives_the_new_row(old: Row, new: Row, limit: int) -> None:
    before, after = cells(fit(old, limit)), cells(fit(new, limit))
    start, length = change(fit(old, limit), fit(new, limit)) or (0, 0)
    assert [*before[:start], *after[start : start + length], *before[start + length :]] == after


def test_equal_rows_need_no_repaint() -> None:
    assert change([("step 62/80", "text")], [("step", "text"), (" 62/80", "text")]) is None


def test_a_change_reaches_from_the_first_difference_to_the_last() -> None:
    assert change([("step 62/80  77 %", "text")], [("step 63/80  78 %", "text")]) == (6, 8)


def test_a_change_of_role_alone_is_a_change() -> None:
    assert change([("WARN", "warn")], [("WARN", "critical")]) == (0, 4)


def test_blanks_take_the_role_before_them() -> None:
    assert joined([("a", "title"), ("  ", "text"), ("b", "title")]) == [("a  b", "title")]
    assert joined([(" ", "text"), ("b", "title"), (" ", "dim")]) == [(" b ", "title")]


def test_a_wide_character_takes_two_cells() -> None:
    assert cells([("中a", "text")]) == [("中", "text"), ("", "text"), ("a", "text")]
