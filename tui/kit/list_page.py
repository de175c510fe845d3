"""The base of pages with a table: a page defines its rows and the detail of each."""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widget import Widget

from tui.kit.drawing.rows import Row
from tui.kit.page import HIDDEN, ResultT
from tui.kit.widgets.inspector import Inspected, Inspection
from tui.kit.widgets.lines import Lines
from tui.kit.widgets.lists import LineTable


class ListPage(Inspected[ResultT]):
    """A table with one line per thing; the selected one is described next to it, or in a few lines below."""

    TABLE: ClassVar[type[LineTable]]
    EMPTY: ClassVar[str] = ""  # is shown when there are no lines
    DETAIL: ClassVar[str]  # id of the `Lines` with the detail
    DETAIL_ROWS: ClassVar[int] = 0  # minimum rows of the detail
    DETAIL_SCROLLS: ClassVar[bool] = False  # whether the detail takes half of the page

    def row(self, key: str, columns: int) -> Row:
        """The line of a key; its first cell is for the cursor."""
        raise NotImplementedError

    def detail(self, key: str | None, columns: int) -> Sequence[Row]:
        """The detail of the selected line; without a selection, the page's."""
        raise NotImplementedError

    def make_list(self, *above: Widget) -> ComposeResult:
        """The table with the parts above, the detail below and the inspector; for `compose`."""
        detail: Widget = Lines([[]] * self.DETAIL_ROWS, id=self.DETAIL)
        if self.DETAIL_SCROLLS:
            detail = VerticalScroll(detail, can_focus=False)
        yield from self.split(*above, self.TABLE(self.row, self.EMPTY), detail)

    def inspect(self, key: str | None, columns: int) -> Inspection:
        """The detail; a page may add more."""
        return Inspection(rows=self.detail(key, columns))

    @property
    def table(self) -> LineTable:
        return self.query_one(self.TABLE)

    def show_list(self, keys: Sequence[str]) -> None:
        """Replaces the lines."""
        self.table.show(keys)
        self.show_detail()

    def show_detail(self) -> None:
        """Shows the selected line: in the inspector, otherwise in a few lines below the table."""
        lines = self.query_one(f"#{self.DETAIL}", Lines)
        box = lines.parent if self.DETAIL_SCROLLS and isinstance(lines.parent, Widget) else lines
        self.show_inspection()
        box.set_class(self.inspects, HIDDEN)
        if self.inspects:
            return
        rows = self.detail(self.table.cursor, self.size.width)
        fill: list[Row] = [[] for _ in range(self.DETAIL_ROWS - len(rows))]
        lines.show([*rows, *fill])

    def on_resize(self) -> None:
        self.show_detail()

    def on_listing_moved(self) -> None:
        for scroll in self.query(VerticalScroll):  # for a long detail
            scroll.scroll_home(animate=False)
        if self.inspects:
            self.inspect_soon()
        else:
            self.show_detail()
