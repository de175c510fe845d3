"""The table of metrics: as many lines as there is room for, with a cursor."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message

from tui.drawing.rows import Row
from tui.glyphs import CURSOR
from tui.widgets.painted import Painted


class MetricTable(Painted, can_focus=True):
    """Asks for the lines in sight alone: a thousand metrics cost what a screenful does.

    The first cell of a line is the cursor's.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "choose", "chart", key_display="enter", tooltip="The metric's chart, full screen"),
        Binding("up,k", "move(-1)", "up", show=False),
        Binding("down,j", "move(1)", "down", show=False),
        Binding("pageup", "move(-8)", "page up", show=False),
        Binding("pagedown", "move(8)", "page down", show=False),
        Binding("home", "move(-100000)", "first", show=False),
        Binding("end", "move(100000)", "last", show=False),
    ]

    class Moved(Message):
        """The cursor is on another metric."""

    class Chosen(Message):
        """Enter was pressed on this metric."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    def __init__(self, line: Callable[[str, int], Row], nothing: str) -> None:
        """`line` draws a key in so many columns; `nothing` is said when there are no keys."""
        super().__init__()
        self.keys: Sequence[str] = ()
        self.cursor: str | None = None
        self._line, self._nothing, self._top = line, nothing, 0

    def show(self, keys: Sequence[str]) -> None:
        """Replaces the keys. A cursor whose key has gone moves to the first one."""
        self.keys = keys
        if self.cursor not in keys:
            self.cursor = keys[0] if keys else None
        self.redraw()

    def draw(self, columns: int, rows: int) -> list[Row]:
        if self.cursor is None:
            return [[(self._nothing, "dim")]]
        at = self.keys.index(self.cursor)
        self._top = max(min(self._top, at, len(self.keys) - rows), at - rows + 1, 0)
        drawn = []
        for key in self.keys[self._top : self._top + rows]:
            row = self._line(key, columns)
            if key == self.cursor:
                (text, role), *rest = row
                row = [(CURSOR, "live"), (text[1:], role), *rest]
            drawn.append(row)
        return drawn

    def on_mouse_scroll_down(self) -> None:
        self.action_move(3)

    def on_mouse_scroll_up(self) -> None:
        self.action_move(-3)

    def action_move(self, distance: int) -> None:
        if self.cursor is not None:
            at = self.keys.index(self.cursor) + distance
            self.cursor = self.keys[min(max(at, 0), len(self.keys) - 1)]
            self.redraw()
            self.post_message(self.Moved())

    def action_choose(self) -> None:
        if self.cursor is not None:
            self.post_message(self.Chosen(self.cursor))
