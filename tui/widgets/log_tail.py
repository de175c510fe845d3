"""The last words of the console."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from tui.drawing.rows import Row
from tui.widgets.painted import Painted

_WRITER = r"(?:\(\w+\) )?"
_KNOWN = re.compile(_WRITER + r"(?:step:\d+ - |Training Progress: )")
_RAY = re.compile(r"\[[\d-]{10} [\d:,]{12} [A-Z] \d+ \d+\] logging\.cc:\d+: ")  # says a signal's lines again
_FRAME = re.compile(_WRITER + r"(?:PC: @| *@) +0x")
_UNDERLINE = re.compile(_WRITER + r"[\s^~]+$")
_BAR = re.compile(r"(.*?): +\d+%\|")
_NUMBER = re.compile(r"\d+")


class LogTail(Painted):
    """As many of the last lines as fit, the newest at the bottom.

    Left out are blank lines, step lines, whose hundred figures are in the charts, veRL's own progress, which
    has a line above, all states of any other progress bar but the newest, of lines that differ in numbers
    alone, as each step's "Dumped generations to", all but the last, the addresses that Ray prints when a
    signal ends a process, and what underlines the code in a traceback.
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
        line = _RAY.sub("", line)
        if not line.strip() or any(left_out.match(line) for left_out in (_KNOWN, _FRAME, _UNDERLINE)):
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
