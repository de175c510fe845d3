"""The results behind docs/reference/algorithms.md (`make matrix`)."""

import pytest
from corpus import Case
from matrix import SHORT, Cell, cells, read

ROWS = [(cell, row) for cell in cells() if (row := read().get(cell.key))]


def test_every_row_was_run_with_these_settings() -> None:
    missing = [cell.key for cell in cells() if read().get(cell.key, {}).get("settings") != list(cell.settings)]
    assert missing == [], "make matrix ARGS=NAME"


@pytest.mark.slow
@pytest.mark.parametrize(("cell", "row"), ROWS, ids=[cell.key for cell, _ in ROWS])
def test_the_preflight_refuses_what_verl_cannot_run_and_nothing_else(cell: Cell, row: dict) -> None:
    found = Case("toy-cpu", [*SHORT, *cell.settings]).findings()
    rules = {each.id for each in found if each.level == "error"}
    assert rules == (set() if row["outcome"] == "runs" else set(row["check"].split(", ")))
