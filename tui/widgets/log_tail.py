"""The last words of the console."""

import re
from collections.abc import Sequence
from itertools import islice

from tui.drawing.rows import Row
from tui.widgets.painted import Painted

_STEP = re.compile(r"(\(\w+\) )?step:\d+ - ")


class LogTail(Painted):
    """As many of the last lines as fit, the newest at the bottom.

    Blank lines are left out, and step lines, whose hundred figures are in the charts.
    """

    lines: Sequence[str] = ()

    def show(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.redraw()

    def draw(self, columns: int, rows: int) -> list[Row]:
        words = (line for line in reversed(self.lines) if line.strip() and not _STEP.match(line))
        last = list(islice(words, rows))
        return [[(f" {line[: columns * 2]}", "dim")] for line in reversed(last)]
