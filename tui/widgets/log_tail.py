"""The last words of the console."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from tui.drawing.rows import Row
from tui.widgets.painted import Painted

_KNOWN = re.compile(r"(\(\w+\) )?(?:step:\d+ - |Training Progress: )")
_BAR = re.compile(r"(.*?): +\d+%\|")
_NUMBER = re.compile(r"\d+")


class LogTail(Painted):
    """As many of the last lines as fit, the newest at the bottom.

    Left out are blank lines, step lines, whose hundred figures are in the charts, veRL's own progress, which
    has a line above, all states of any other progress bar but the newest, and of lines that differ in numbers
    alone, as each step's "Dumped generations to", all but the last.
    """

    lines: Sequence[str] = ()

    def show(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.redraw()

    def draw(self, columns: int, rows: int) -> list[Row]:
        last = list(islice(_telling(self.lines), rows))
        return [[(f" {line[: columns * 2]}", "dim")] for line in reversed(last)]


def _telling(lines: Sequence[str]) -> Iterator[str]:
    """The lines that say something, newest first."""
    bars: set[str] = set()
    shape_below = ""
    for line in reversed(lines):
        if not line.strip() or _KNOWN.match(line):
            continue
        shape = _NUMBER.sub("0", line)
        if shape == shape_below:
            continue
        shape_below = shape
        if bar := _BAR.match(line):
            if bar[1] in bars:
                continue
            bars.add(bar[1])
        yield line
