"""Rows of text in a scrolling container."""

from collections.abc import Sequence
from textwrap import wrap

from textual.geometry import Size

from launcher.core.text import clean
from tui.kit.drawing.rows import Row
from tui.kit.widgets.painted import Painted

_INDENT = 6  # cells before what goes on from the line above


class CommandText(Painted):
    """As high as the command is in its width: a long line goes on in the next one."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.text, self.role = "", "text"

    def show(self, text: str, role: str = "text") -> None:
        taller = (text, role) != (self.text, self.role)
        self.text, self.role = text, role
        if taller:
            self.refresh(layout=True)
        self.redraw()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._folded(width))

    def draw(self, columns: int, rows: int) -> list[Row]:
        return [[(f" {line}", self.role)] for line in self._folded(columns)]

    def _folded(self, columns: int) -> list[str]:
        room = max(columns - 2, 8)
        indent = " " * min(_INDENT, room // 4)
        return [
            piece
            for line in clean(self.text).splitlines()
            for piece in wrap(line, room, subsequent_indent=indent, drop_whitespace=False, break_on_hyphens=False)
        ]


class Lines(Painted):
    """As high as it has rows."""

    def __init__(self, lines: Sequence[Row] = (), *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.lines = lines

    def show(self, lines: Sequence[Row]) -> None:
        taller = len(lines) != len(self.lines)
        self.lines = lines
        if taller:
            self.refresh(layout=True)
        self.redraw()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self.lines)

    def draw(self, columns: int, rows: int) -> list[Row]:
        return list(self.lines)
