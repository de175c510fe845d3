"""The last lines of the console."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from tui.kit.drawing.rows import Row
from tui.kit.widgets.message_line import MOST, Said, message_rows
from tui.kit.widgets.painted import Painted

_LEFT_OUT = re.compile(
    r"(?:\(\w+\) )?(?:"
    r"step:\d+ - |Training Progress: "
    r"| +[\"']+(?:val-|np\.)"  # figures of a validation, behind the line that names it
    r"|(?:PC: @| *@) +0x"  # addresses that Ray prints when a signal ends a process
    r"|[\s^~]*(?:\[repeated \d+x across cluster\])?$)"  # underlines of code in a traceback
)
_RAY = re.compile(r"\[[\d-]{10} [\d:,]{12} [A-Z] \d+ \d+\] logging\.cc:\d+: ")  # repeats a signal's lines
_BAR = re.compile(r"(.*?): +\d+%\|")
_NUMBER = re.compile(r"\d+")
_WORD = re.compile(r"[^\W\d_]{3}")


class LogTail(Painted):
    """As many of the last lines as fit, newest at the bottom.

    Omitted: blank lines, metrics of steps and validations (shown by the charts), veRL's own progress (shown above),
    other complete progress bars and older states of others, all but the last of lines that differ only in numbers,
    addresses that Ray prints when a signal ends a process, underlines in tracebacks, and lines without a word, such as
    `rc=134`.
    """

    BORDER_TITLE = "log"
    lines: Sequence[str] = ()
    said: Said | None = None

    def show(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.redraw()

    def count(self, most: int) -> int:
        """The number of lines to show, at most `most`."""
        return len(list(islice(_telling(self.lines), most)))

    def say(self, said: Said | None) -> None:
        """Shows a message in the last rows for some time; None removes it.

        A separate widget would make Textual paint the whole screen, 6 kB at 80x24, each time it appears.
        """
        self.said = said
        self.redraw()
        if said is not None:
            self.set_timer(max(said.left, 0.01), lambda: self.say(None) if self.said is said else None)

    def draw(self, columns: int, rows: int) -> list[Row]:
        said = message_rows(self.said, columns, min(rows, MOST)) if self.said is not None else []
        last = list(islice(_telling(self.lines), rows - len(said)))
        return [*([(f" {line[: columns * 2]}", "dim")] for line in reversed(last)), *said]


def _telling(lines: Sequence[str]) -> Iterator[str]:
    """The lines worth showing, newest first."""
    bars: set[str] = set()
    shape_below = ""
    for line in reversed(lines):
        line = _RAY.sub("", line)
        if _LEFT_OUT.match(line) or not _WORD.search(line):
            continue
        shape = _NUMBER.sub("0", line)
        if shape == shape_below:
            continue
        shape_below = shape
        if bar := _BAR.match(line):
            if bar[1] in bars or " 100%|" in line:
                continue
            bars.add(bar[1])
        yield line
