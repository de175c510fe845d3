"""A part of a log of any size, with a cursor."""

import re

from textual.events import Resize
from textual.message import Message

from launcher.console.pager import Keep, LogEntry, LogPager
from launcher.console.search import is_trouble
from tui.kit.drawing.glyphs import AXIS, CURSOR, ELLIPSIS
from tui.kit.drawing.rows import Row, Span, crop, folded, paragraph, spread
from tui.kit.keys import KEYS
from tui.kit.widgets.painted import Painted

_EMPTY = "veRL's console output appears here. This attempt has not printed anything yet."
_FRAME = re.compile(r"(?:\[[^\]]{10,60}\] \S{1,40} )?\s{0,9}(?:PC: )?@\s+0x[0-9a-f]{4,16}\s")  # of a native stack
_ASIDE = re.compile(
    r"\[?\b(?:\d{4}-)?\d\d-\d\d[ T]\d\d:\d\d:\d\d[.,\d]*|\bpid[= ]\d+"
    r"|\[?\b[\w./-]{1,80}\.(?:py|cc|cpp|cu):\d+\]?|File \"[^\"]{1,200}\", line \d+"
)
_NONE_KEPT = "No lines from this source, or none that match. tab shows another source, & shows all lines again."


class LogView(Painted, can_focus=True):
    """Holds only the visible entries; follows the end of the log until the cursor leaves it."""

    BINDINGS = KEYS["log view"]

    class Moved(Message):
        """Another line is chosen, or others are visible."""

    class Beyond(Message):
        """The next entry is too far away for an immediate read: before or after the byte `offset`."""

        def __init__(self, offset: int, *, forward: bool) -> None:
            super().__init__()
            self.offset, self.forward = offset, forward

    def __init__(self) -> None:
        super().__init__()
        self.pager: LogPager | None = None
        self.entries: list[LogEntry] = []
        self.cursor = 0
        self.column = 0
        self.following = True
        self.keep: Keep | None = None
        self.needle = ""
        self.quoted = -1  # the byte of the line that was gone to
        self.wrap = False  # long lines take as many rows as they need
        self.mark: int | None = None  # the byte where a selection began

    def open(self, pager: LogPager) -> None:
        self.pager, self.following, self.mark = pager, True, None
        self.fill()

    @property
    def chosen(self) -> LogEntry | None:
        return self.entries[self.cursor] if self.cursor < len(self.entries) else None

    @property
    def selected(self) -> tuple[int, int] | None:
        """The bytes from the mark to the cursor, both lines whole."""
        if self.chosen is None:
            return None
        mark = self.chosen.offset if self.mark is None else self.mark
        return min(mark, self.chosen.offset), max(mark + 1, self.chosen.end)

    def _folds(self, entry: LogEntry) -> bool:
        """Whether a line is a frame of a native stack that nobody looks for; wrapping unfolds all."""
        sought = entry.offset == self.quoted or (self.needle and self.needle.lower() in entry.shown.lower())
        return not (self.wrap or sought or not _FRAME.match(entry.text) or is_trouble(entry.text.encode()))

    def fill(self) -> None:
        """Rereads the visible part, after the log has grown or the screen was resized."""
        if self.following:
            self.follow()
        elif self.pager is not None and self.entries:
            chosen = self.chosen or self.entries[-1]
            self.entries = self.pager.page(self.entries[0].offset, self.room, self.keep, self._folds).entries
            at = [index for index, entry in enumerate(self.entries) if entry.offset <= chosen.offset]
            self._move_cursor(at[-1] if at else 0)

    def follow(self) -> None:
        self.following = True
        if self.pager is not None:
            page = self.pager.page_before(self.pager.size, self.room, self.keep, self._folds)
            self.entries = page.entries
            self._move_cursor(len(page.entries) - 1)
            if not page.entries and page.reached > 0:
                self.post_message(self.Beyond(page.reached, forward=False))

    def show_at(self, offset: int) -> None:
        """Chooses the line at a byte, or the next visible one, and shows its surroundings."""
        if self.pager is None:
            return
        self.following, self.quoted = False, offset
        below = self.pager.page(offset, self.room, self.keep, self._folds)
        most = max(self.room // 3, self.room - len(below.entries))
        above = self.pager.page_before(offset, most, self.keep, self._folds)
        self.entries = [*above.entries, *below.entries][: self.room]
        self._move_cursor(min(len(above.entries), len(self.entries) - 1))
        if not self.entries and above.reached > 0:
            self.post_message(self.Beyond(above.reached, forward=False))

    def draw(self, columns: int, rows: int) -> list[Row]:
        if self.pager is None or not self.entries:
            return paragraph(_NONE_KEPT if self.keep else _EMPTY, "dim", columns)
        start, end = (self.selected if self.mark is not None else None) or (0, 0)
        drawn: list[Row] = []
        for index, entry in enumerate(self.entries):
            at_cursor = index == self.cursor
            lines = self._wrapped if self.wrap else self._cropped
            drawn += lines(entry, columns, at_cursor, start <= entry.offset < end)
            if at_cursor:
                last = len(drawn)  # rows until the end of the chosen line, which stays in sight
        below = len(drawn) if self.following else last
        return drawn[max(below - rows, 0) :][:rows]

    def on_resize(self, event: Resize) -> None:
        self.fill()

    def action_move(self, distance: int) -> None:
        if self.pager is None or not self.entries:
            return
        self.following = False
        cursor = self.cursor + distance
        if cursor < 0:
            page = self.pager.page_before(self.entries[0].offset, -cursor, self.keep, self._folds)
            self.entries = [*page.entries, *self.entries][: self.room]
            cursor = 0
        elif cursor >= len(self.entries):
            more = cursor + 1 - len(self.entries)
            page = self.pager.page(self.entries[-1].end, more, self.keep, self._folds)
            self.entries = [*self.entries, *page.entries][-self.room :]
            cursor = len(self.entries) - 1
        else:
            self._move_cursor(cursor)
            return
        self._move_cursor(cursor)
        if not page.entries and 0 < page.reached < self.pager.size:
            self.post_message(self.Beyond(page.reached, forward=distance > 0))

    def action_leaf(self, direction: int) -> None:
        """Moves by a page; the cursor first goes to the edge."""
        edge = len(self.entries) - 1 - self.cursor if direction > 0 else self.cursor
        self.action_move(direction * (edge + self.room - 1))

    def action_first(self) -> None:
        self.show_at(0)

    def action_sideways(self, direction: int) -> None:
        self.column = max(self.column + direction * max(self.size.width // 2, 1), 0)
        self.redraw()

    @property
    def room(self) -> int:
        """The number of entries that fit."""
        return max(self.size.height, 1)

    def _move_cursor(self, cursor: int) -> None:
        self.cursor = max(cursor, 0)
        self.redraw()
        self.post_message(self.Moved())

    def _cropped(self, entry: LogEntry, columns: int, at_cursor: bool, selected: bool) -> list[Row]:
        start = self.column
        if not start and self.needle:  # the first character that keeps the match in sight
            found = entry.shown.lower().find(self.needle.lower())
            start = max(found - columns // 3, 0) if found + len(self.needle) > columns - 2 else 0
        spans = _from(self._spans(entry, start + 4 * columns), start)
        row: Row = [(_sign(at_cursor, selected), "live"), *([(ELLIPSIS, "dim")] if start else []), *spans]
        if entry.repeats > 1 and not entry.folded:
            times: Row = [(f" ×{entry.repeats:,}", "notice")]
            return [spread(crop(row, columns - 2 - len(times[0][0])), times, columns)]
        return [crop(row, columns)]

    def _wrapped(self, entry: LogEntry, columns: int, at_cursor: bool, selected: bool) -> list[Row]:
        width = max(columns - 1, 1)
        spans = self._spans(entry, width * self.room)
        if entry.repeats > 1:
            spans.append((f" ×{entry.repeats:,}", "notice"))
        return [[(_sign(at_cursor, selected), "live"), *row] for row in folded(spans, width)]

    def _spans(self, entry: LogEntry, longest: int) -> Row:
        """The line with its source, as far as it fits; hits of the search stand out, times and files do not."""
        row: Row = [(f"({entry.source}) ", "dim")] if entry.source else []
        if entry.folded and entry.repeats > 1:
            return [*row, (f"{entry.repeats:,} frames of a native stack; a w shows them", "dim")]
        role = "critical" if is_trouble(entry.text.encode(errors="replace")) else "text"
        hits = re.compile(re.escape(self.needle) or "(?!)", re.IGNORECASE)
        for text, other in _parts(entry.text[:longest], hits, role, "live"):
            row += [(text, other)] if other == "live" else _parts(text, _ASIDE, role, "dim")
        return row


def _parts(text: str, found: re.Pattern[str], role: str, other: str) -> Row:
    """The text, with another role where the pattern matches."""
    row, at = list[Span](), 0
    for match in found.finditer(text):
        row += [(text[at : match.start()], role), (match[0], other)]
        at = match.end()
    return [span for span in (*row, (text[at:], role)) if span[0]]


def _sign(at_cursor: bool, selected: bool) -> str:
    return CURSOR if at_cursor else AXIS if selected else " "


def _from(row: Row, column: int) -> Row:
    """The part of a row from its character `column` on."""
    found: Row = []
    for text, role in row:
        if column < len(text):
            found.append((text[column:], role))
        column = max(column - len(text), 0)
    return found
