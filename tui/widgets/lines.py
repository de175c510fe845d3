"""Fixed rows of text in a scrolling container."""

from textual.geometry import Size

from tui.drawing.rows import Row
from tui.widgets.painted import Painted


class Lines(Painted):
    """As high as it has rows."""

    def __init__(self, lines: list[Row]) -> None:
        super().__init__()
        self.lines = lines

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self.lines)

    def draw(self, columns: int, rows: int) -> list[Row]:
        return self.lines
