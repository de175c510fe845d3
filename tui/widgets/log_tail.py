"""The last words of the console."""

from collections.abc import Sequence
from itertools import islice

from tui.drawing.rows import Row
from tui.widgets.painted import Painted


class LogTail(Painted):
    """As many of the last lines as fit, the newest at the bottom; blank ones are left out."""

    lines: Sequence[str] = ()

    def show(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.redraw()

    def draw(self, columns: int, rows: int) -> list[Row]:
        words = (line for line in reversed(self.lines) if line.strip())
        last = list(islice(words, rows))
        return [[(f" {line[: columns * 2]}", "dim")] for line in reversed(last)]
