"""The bases of the pages that list things: a page declares its rows and its detail, and what opening one does."""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import VerticalScroll

from tui.kit.drawing.rows import Item, Row
from tui.kit.navigation import navigation
from tui.kit.page import Page, ResultT
from tui.kit.run_page import RunPage
from tui.kit.widgets.lines import Lines
from tui.kit.widgets.lists import Items, LineTable


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


class ItemsPage(RunPage):
    """Entries of several rows each about a run, which follow it; enter opens the check that one is about."""

    LIST: ClassVar[type[Items]]
    EMPTY: ClassVar[str] = ""  # is shown when there are no entries

    def items(self, columns: int) -> list[Item]:
        """The entries in their order."""
        raise NotImplementedError

    def body(self) -> ComposeResult:
        with VerticalScroll(can_focus=False):
            yield self.LIST()

    @property
    def listed(self) -> Items:
        return self.query_one(self.LIST)

    def show_body(self) -> None:
        self.listed.show(self.items(self.size.width) or [Item(None, [[(self.EMPTY, "dim")]])])

    def on_listing_chosen(self, event: Items.Chosen) -> None:
        self.open_entry(event.key)

    def open_entry(self, name: str) -> None:
        """What enter does on the entry of this name."""
        navigation(self.app).show("check", self.run, name)
