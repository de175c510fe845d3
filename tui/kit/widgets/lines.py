"""Rows of text in a scrolling container."""

from collections.abc import Sequence
from textwrap import wrap

from launcher.core.text import clean
from tui.kit.drawing.rows import Row
from tui.kit.widgets.painted import Grown

_INDENT = 6  # cells before a continued line


class CommandText(Grown):
    """A command, as high as its wrapped lines."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.text, self.role = "", "text"

    def show(self, text: str, role: str = "text") -> None:
        self.text, self.role = text, role
        self.redraw()

    def draw(self, columns: int, rows: int) -> list[Row]:
        room = max(columns - 2, 8)
        indent = " " * min(_INDENT, room // 4)
        return [
            [(f" {piece}", self.role)]
            for line in clean(self.text).splitlines()
            for piece in wrap(line, room, subsequent_indent=indent, drop_whitespace=False, break_on_hyphens=False)
        ]


class Lines(Grown):
    """A widget as high as its rows."""

    def __init__(self, lines: Sequence[Row] = (), *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.lines = lines

    def show(self, lines: Sequence[Row]) -> None:
        self.lines = lines
        self.redraw()

    def draw(self, columns: int, rows: int) -> list[Row]:
        return list(self.lines)
