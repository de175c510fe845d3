"""Rows of text in a scrolling container."""

from collections.abc import Sequence

from textual.geometry import Size

from tui.kit.drawing.rows import Row
from tui.kit.widgets.painted import Painted


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
