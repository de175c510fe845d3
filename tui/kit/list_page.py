"""The base of the pages with a table: a page declares its rows and its detail."""

from collections.abc import Sequence
from typing import ClassVar

from textual.containers import VerticalScroll

from tui.kit.drawing.rows import Row
from tui.kit.page import Page, ResultT
from tui.kit.widgets.lines import Lines
from tui.kit.widgets.lists import LineTable


class ListPage(Page[ResultT]):
    """A table of one line per thing, and what there is to say about the selected one."""

    TABLE: ClassVar[type[LineTable]]
    EMPTY: ClassVar[str] = ""  # is shown when there are no lines
    DETAIL: ClassVar[str]  # id of the `Lines` with the detail
    DETAIL_ROWS: ClassVar[int] = 0  # of the detail at least

    def row(self, key: str, columns: int) -> Row:
        """The line of a key; its first cell is the cursor's."""
        raise NotImplementedError

    def detail(self, key: str | None, columns: int) -> Sequence[Row]:
        """All about the selected line; about the page when nothing is selected."""
        raise NotImplementedError

    def make_table(self) -> LineTable:
        """The table, to be placed by `compose`."""
        return self.TABLE(self.row, self.EMPTY)

    @property
    def table(self) -> LineTable:
        return self.query_one(self.TABLE)

    def show_list(self, keys: Sequence[str]) -> None:
        """Replaces the lines."""
        self.table.show(keys)
        self.show_detail()

    def show_detail(self) -> None:
        """Shows the detail of the selected line."""
        rows = self.detail(self.table.cursor, self.size.width)
        fill: list[Row] = [[] for _ in range(self.DETAIL_ROWS - len(rows))]
        self.query_one(f"#{self.DETAIL}", Lines).show([*rows, *fill])

    def on_resize(self) -> None:
        self.show_detail()

    def on_listing_moved(self) -> None:
        for scroll in self.query(VerticalScroll):  # of a long detail
            scroll.scroll_home(animate=False)
        self.show_detail()
