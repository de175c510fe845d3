"""Delta debugging: what it leaves fails, and fails no longer without any one of its items."""

from hypothesis import given
from hypothesis import strategies as st

from launcher.report.ddmin import ddmin

ITEMS = tuple(range(24))
needed = st.sets(st.sampled_from(ITEMS), max_size=4)


@given(needed)
def test_items_that_are_needed_together_are_found(wanted: set[int]) -> None:
    assert set(ddmin(ITEMS, lambda some: wanted <= set(some))) == wanted


@given(st.lists(needed, min_size=1, max_size=4))
def test_one_of_several_causes_is_found(causes: list[set[int]]) -> None:
    found = ddmin(ITEMS, lambda some: any(cause <= set(some) for cause in causes))
    assert set(found) in causes


@given(st.sets(st.sets(st.sampled_from(ITEMS[:6])).map(frozenset), max_size=20), st.integers(1, 6))
def test_whatever_the_test_no_single_item_can_be_left_out(failing: set[frozenset[int]], size: int) -> None:
    """Also where more items do not always fail: the failure may be of one selection alone."""
    items = ITEMS[:size]

    def fails(some: tuple[int, ...]) -> bool:
        return set(some) == set(items) or frozenset(some) in failing

    found = ddmin(items, fails)
    assert fails(found)
    assert not any(fails(tuple(item for item in found if item != one)) for one in found)


@given(needed)
def test_no_selection_is_asked_for_twice_and_an_interrupted_search_has_a_result(wanted: set[int]) -> None:
    asked, kept = list[tuple[int, ...]](), [ITEMS]

    def fails(some: tuple[int, ...]) -> bool:
        asked.append(some)
        return wanted <= set(some)

    found = ddmin(ITEMS, fails, kept.append)
    assert len(asked) == len(set(asked)) <= len(ITEMS) ** 2
    assert kept[-1] == found and all(wanted <= set(some) for some in kept)
