"""Lists with a cursor: the same keys move in each of them."""

from types import SimpleNamespace

import pytest
from textual.screen import Screen

from tui.kit.widgets.lists import LineTable, MetricTable, ResponseTable, RunTable
from tui.pages.editor.form import FormLines

KEYS = [str(number) for number in range(20)]
MOVES = [("end", "19"), ("up", "18"), ("k", "17"), ("home", "0"), ("down", "1"), ("j", "2")]
PAGES = [("pagedown", "10"), ("pageup", "2")]


@pytest.mark.parametrize(
    ("kind", "moves"),
    [(kind, MOVES + PAGES) for kind in (MetricTable, RunTable, FormLines)]
    + [(ResponseTable, [*MOVES, ("pagedown", "2"), ("pageup", "2")])],  # a page is one of the answer's text
)
async def test_the_cursor_moves(make: SimpleNamespace, kind: type[LineTable], moves: list[tuple[str, str]]) -> None:
    app, table = make.app(), kind(lambda key, columns: [(f" {key}", "text")], "nothing")
    async with app.run_test(size=(40, 10)) as pilot:
        await app.push_screen(Screen())
        await app.screen.mount(table)
        table.show(KEYS)
        table.focus()
        found = []
        for key, _ in moves:
            await pilot.press(key)
            found.append((key, table.cursor))
    assert found == moves


def test_arrows_say_that_there_are_more_lines() -> None:
    table = LineTable(lambda key, columns: [(f"  {key}", "text")], "nothing")
    table.show([f"line {number}" for number in range(9)])

    def drawn() -> list[str]:
        return ["".join(text for text, _ in row) for row in table.draw(12, 4)]

    assert [row[-1] for row in drawn()] == ["0", "1", "2", "↓"]
    table.cursor = "line 5"
    assert [row[-1] for row in drawn()] == ["↑", "3", "4", "↓"]
    table.cursor = "line 8"
    assert [row[-1] for row in drawn()] == ["↑", "6", "7", "8"]


def test_an_arrow_cuts_no_line() -> None:
    table = LineTable(lambda key, columns: [(key.rjust(columns), "text")], "nothing")
    table.show([f"line {number}" for number in range(9)])
    assert ["".join(text for text, _ in row) for row in table.draw(12, 2)] == ["❯    line 0", "     line 1↓"]
