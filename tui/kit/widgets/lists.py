"""Lists with a cursor: tables with one line per thing, and entries of several rows."""

from collections.abc import Callable, Sequence

from textual.events import Click
from textual.geometry import Region
from textual.message import Message
from textual.widget import Widget

from tui.kit.drawing.glyphs import CURSOR, DOWN, UP
from tui.kit.drawing.rows import HEADING, Item, Row, fit, paragraph
from tui.kit.keys import KEYS
from tui.kit.widgets.painted import CURSOR_ROW, Grown, Painted


class Listing(Painted, can_focus=True):
    """Keeps its cursor on the same name when the list changes."""

    cursor: str | None = None

    class Moved(Message):
        """The cursor moved to another entry."""

    class Chosen(Message):
        """Enter was pressed on the entry of this name."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    @property
    def names(self) -> Sequence[str]:
        """The names that the cursor can be on, in order."""
        raise NotImplementedError

    @property
    def length(self) -> int:
        """The rows that show all of it."""
        raise NotImplementedError

    def keep_cursor(self) -> None:
        """Moves a cursor on a removed entry to the first one."""
        before = self.cursor
        if self.cursor not in (names := self.names):
            self.cursor = names[0] if names else None
        if (before is None) != (self.cursor is None) and self.is_attached:
            self.screen.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disables the opening key in an empty list."""
        return action != "choose" or self.cursor is not None

    def move_to(self, key: str) -> None:
        """Puts the cursor on an entry."""
        self.cursor = key
        self.redraw()
        self.post_message(self.Moved())

    def action_move(self, distance: int) -> None:
        names = self.names
        if self.cursor is not None and names:
            self.move_to(names[min(max(names.index(self.cursor) + distance, 0), len(names) - 1)])

    def action_choose(self) -> None:
        if self.cursor is not None:
            self.post_message(self.Chosen(self.cursor))


class LineTable(Listing):
    """Draws only the visible lines, so that a thousand lines cost as much as a screenful.

    The first cell of a line is for the cursor; an arrow at the end of the first or last line shows that there are more.
    A click moves the cursor, a second one chooses.
    """

    BINDINGS = KEYS["list"]

    def __init__(self, line: Callable[[str, int], Row], nothing: str) -> None:
        """`line` draws a key in a given number of columns; `nothing`: shown without keys."""
        super().__init__()
        self.keys: Sequence[str] = ()
        self._line, self._nothing, self._top = line, nothing, 0

    def show(self, keys: Sequence[str]) -> None:
        """Replaces the keys. A cursor on a removed key moves to the first one."""
        self.keys = keys
        self.keep_cursor()
        self.redraw()

    @property
    def names(self) -> Sequence[str]:
        return [key for key in self.keys if self.choosable(key)]

    @property
    def length(self) -> int:
        return len(self.keys)

    @property
    def in_sight(self) -> Sequence[str]:
        """The keys of visible lines."""
        return self.keys[self._top : self._top + self.size.height]

    def choosable(self, key: str) -> bool:
        """Whether the cursor may be on a line; it skips headings."""
        return True

    def draw(self, columns: int, rows: int) -> list[Row]:
        if not self.keys:
            return paragraph(self._nothing.strip(), "dim", columns)
        at = above = self.keys.index(self.cursor) if self.cursor is not None else 0
        while above and not self.choosable(self.keys[above - 1]):
            above -= 1  # a heading comes into sight with its first line
        self._top = max(min(self._top, above, len(self.keys) - rows), at - rows + 1, 0)
        drawn = []
        for key in self.keys[self._top : self._top + rows]:
            row = self._line(key, columns - 1)  # the last cell is for arrows
            if key == self.cursor:
                row = _pointed(row)
            drawn.append(row)
        if self._top and rows > 1:
            drawn[0] = [*fit(drawn[0], columns - 1), (UP, "dim")]
        if self._top + rows < len(self.keys) and rows > 1:
            drawn[-1] = [*fit(drawn[-1], columns - 1), (DOWN, "dim")]
        return drawn

    def on_mouse_scroll_down(self) -> None:
        self.action_move(3)

    def on_mouse_scroll_up(self) -> None:
        self.action_move(-3)

    def on_click(self, event: Click) -> None:
        at = self._top + event.y
        key = self.keys[at] if at < len(self.keys) else None
        if key is not None and key == self.cursor:
            self.action_choose()
        elif key is not None and self.choosable(key):
            self.move_to(key)


class MetricTable(LineTable):
    """Metrics; enter opens the chart of one."""

    BINDINGS = KEYS["metric table"]


class RunTable(LineTable):
    """The runs of this machine and the presets, under headings."""

    BINDINGS = KEYS["run table"]

    def choosable(self, key: str) -> bool:
        return not key.startswith(HEADING)


class ResponseTable(LineTable, inherit_bindings=False):
    """Responses of the model. The page keys scroll the selected response below this list instead of the list."""

    BINDINGS = KEYS["responses"]


class Items(Listing, Grown):
    """Belongs into a `VerticalScroll`; keeps its cursor visible, and on the same name when entries change."""

    BINDINGS = KEYS["items"]

    items: Sequence[Item] = ()

    def show(self, items: Sequence[Item]) -> None:
        """Replaces the entries. A cursor on a removed entry moves to the first one."""
        self.items = items
        self.keep_cursor()
        self.redraw()

    @property
    def names(self) -> Sequence[str]:
        return [item.name for item in self.items if item.name is not None]

    @property
    def length(self) -> int:
        return sum(len(item.rows) for item in self.items)

    def draw(self, columns: int, rows: int) -> list[Row]:
        drawn: list[Row] = []
        for name, lines in self.items:
            first, *others = lines
            if name is not None and name == self.cursor:
                first = _pointed(first)
            drawn += [first, *others]
        return drawn

    def move_to(self, key: str) -> None:
        super().move_to(key)
        self._into_sight()

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


def _pointed(row: Row) -> Row:
    """The row with the cursor in its first cell; a very narrow list has empty rows."""
    (text, role), *rest = row or [(" ", "text")]
    return [(CURSOR, CURSOR_ROW), (text[1:], role), *rest]
