"""A list of entries of one or more rows each, with a cursor."""

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import BindingType
from textual.geometry import Region
from textual.message import Message
from textual.widget import Widget

from tui.kit.drawing.glyphs import CURSOR
from tui.kit.drawing.rows import Item, Row
from tui.kit.keys import KEYS
from tui.kit.widgets.painted import CURSOR_ROW, Grown


class Items(Grown, can_focus=True):
    """Stands in a `VerticalScroll` and keeps its cursor in sight, on the same name when entries change."""

    BINDINGS: ClassVar[list[BindingType]] = [*KEYS["items"]]

    class Chosen(Message):
        """Enter was pressed on the entry of this name."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    items: Sequence[Item] = ()
    cursor: str | None = None

    def show(self, items: Sequence[Item]) -> None:
        """Replaces the entries. A cursor whose entry has gone moves to the first one."""
        names = [item.name for item in items if item.name is not None]
        self.items = items
        if self.cursor not in names:
            self.cursor = names[0] if names else None
        self.redraw()

    def draw(self, columns: int, rows: int) -> list[Row]:
        drawn: list[Row] = []
        for name, lines in self.items:
            first, *others = lines
            if name is not None and name == self.cursor:
                (text, role), *rest = first
                first = [(CURSOR, CURSOR_ROW), (text[1:], role), *rest]
            drawn += [first, *others]
        return drawn

    def action_move(self, distance: int) -> None:
        names = [item.name for item in self.items if item.name is not None]
        if self.cursor is None or not names:
            return
        at = names.index(self.cursor)
        self.cursor = names[min(max(at + distance, 0), len(names) - 1)]
        self.redraw()
        self._into_sight()

    def action_choose(self) -> None:
        if self.cursor is not None:
            self.post_message(self.Chosen(self.cursor))

    def _into_sight(self) -> None:
        """Scrolls to the cursor's entry, with the heading above it."""
        top = heading = 0
        for name, rows in self.items:
            if name == self.cursor:
                region = Region(0, top - heading, 1, len(rows) + heading).translate(self.virtual_region.offset)
                if isinstance(self.parent, Widget):
                    self.parent.scroll_to_region(region, animate=False)
                return
            heading = len(rows) if name is None else 0
            top += len(rows)
