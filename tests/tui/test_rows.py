"""Rows: widths in cells, cuts, and which stretches of cells differ."""

from hypothesis import given
from hypothesis import strategies as st

from tui.drawing.rows import Row, cells, changes, crop, fit, joined, put, spread, width

TEXT = st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=12)
ROWS = st.lists(st.tuples(TEXT, st.sampled_from(["text", "dim", "warn"])), max_size=5)
PLAIN = st.lists(
    st.tuples(st.text(alphabet="ab 中●⠓", max_size=9), st.sampled_from(["text", "dim"])), max_size=4
)


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


def test_put_goes_to_its_column_or_behind_what_is_there() -> None:
    assert joined(cells(put([("ab", "text")], 5, [("x", "dim")]))) == [("ab   ", "text"), ("x", "dim")]
    assert width(put([("abcdef", "text")], 3, [("x", "dim")], least=2)) == 9


@given(PLAIN, PLAIN, st.integers(1, 30))
def test_repainting_the_changes_gives_the_new_row(old: Row, new: Row, limit: int) -> None:
    before, after = cells(fit(old, limit)), cells(fit(new, limit))
    painted = list(before)
    for start, length in changes(fit(old, limit), fit(new, limit)):
        painted[start : start + length] = after[start : start + length]
    assert painted == after


def test_equal_rows_need_no_repaint_and_close_changes_are_one_stretch() -> None:
    row: Row = [("step 62/80", "text")]
    assert changes(row, [("step", "text"), (" 62/80", "text")]) == []
    assert changes([("a--a", "text")], [("b--b", "text")]) == [(0, 4)]
    far_old, far_new = "a" + "-" * 20 + "a", "b" + "-" * 20 + "b"
    assert changes([(far_old, "text")], [(far_new, "text")]) == [(0, 1), (21, 1)]


def test_a_change_of_role_alone_is_a_change() -> None:
    assert changes([("WARN", "warn")], [("WARN", "critical")]) == [(0, 4)]


def test_a_wide_character_takes_two_cells() -> None:
    assert cells([("中a", "text")]) == [("中", "text"), ("", "text"), ("a", "text")]
