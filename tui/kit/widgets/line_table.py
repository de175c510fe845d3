"""Tables of named things, a line each: as many lines as there is room for, with a cursor."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.binding import BindingType
from textual.events import Click
from textual.message import Message

from tui.kit.drawing.glyphs import CURSOR, DOWN, UP
from tui.kit.drawing.rows import HEADING, Row, spread
from tui.kit.keys import KEYS
from tui.kit.widgets.painted import CURSOR_ROW, Painted


class LineTable(Painted, can_focus=True):
    """Asks for the lines in sight alone: a thousand cost what a screenful does.

    The first cell of a line is the cursor's; an arrow at the end of the first or last one says that there are more.
    A click moves the cursor, a second one chooses.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*KEYS["list"]]

    class Moved(Message):
        """The cursor is on another line."""

    class Chosen(Message):
        """This line was chosen."""

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
            self.cursor = next(filter(self.choosable, keys), None)
        self.redraw()

    @property
    def in_sight(self) -> Sequence[str]:
        """The keys whose lines are on the screen."""
        return self.keys[self._top : self._top + self.size.height]

    def choosable(self, key: str) -> bool:
        """Whether the cursor can stand on a line; it passes headings over."""
        return True

    def draw(self, columns: int, rows: int) -> list[Row]:
        if not self.keys:
            return [[(self._nothing, "dim")]]
        at = above = self.keys.index(self.cursor) if self.cursor is not None else 0
        while above and not self.choosable(self.keys[above - 1]):
            above -= 1  # a heading comes into sight with its first line
        self._top = max(min(self._top, above, len(self.keys) - rows), at - rows + 1, 0)
        drawn = []
        for key in self.keys[self._top : self._top + rows]:
            row = self._line(key, columns)
            if key == self.cursor:
                (text, role), *rest = row
                row = [(CURSOR, CURSOR_ROW), (text[1:], role), *rest]
            drawn.append(row)
        if self._top and rows > 1:
            drawn[0] = spread(drawn[0], [(UP, "dim")], columns)
        if self._top + rows < len(self.keys) and rows > 1:
            drawn[-1] = spread(drawn[-1], [(DOWN, "dim")], columns)
        return drawn

    def on_mouse_scroll_down(self) -> None:
        self.action_move(3)

    def on_mouse_scroll_up(self) -> None:
        self.action_move(-3)

    def action_move(self, distance: int) -> None:
        if self.cursor is not None:
            keys = [key for key in self.keys if self.choosable(key)]
            at = keys.index(self.cursor) + distance
            self.move_to(keys[min(max(at, 0), len(keys) - 1)])

    def on_click(self, event: Click) -> None:
        at = self._top + event.y
        key = self.keys[at] if at < len(self.keys) else None
        if key is not None and key == self.cursor:
            self.action_choose()
        elif key is not None and self.choosable(key):
            self.move_to(key)

    def move_to(self, key: str) -> None:
        """Puts the cursor on a line."""
        self.cursor = key
        self.redraw()
        self.post_message(self.Moved())

    def action_choose(self) -> None:
        if self.cursor is not None:
            self.post_message(self.Chosen(self.cursor))


class MetricTable(LineTable):
    """Metrics; enter opens the chart of one."""

    BINDINGS: ClassVar[list[BindingType]] = [*KEYS["metric table"]]


class RunTable(LineTable):
    """The runs of this machine and the presets to start from, under headings."""

    BINDINGS: ClassVar[list[BindingType]] = [*KEYS["run table"]]

    def choosable(self, key: str) -> bool:
        return not key.startswith(HEADING)


class ResponseTable(LineTable, inherit_bindings=False):
    """Responses of the model. It has no keys for a page: these read on in the chosen response, which stands below."""

    BINDINGS: ClassVar[list[BindingType]] = [*KEYS["responses"]]
