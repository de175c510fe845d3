"""The progress of reading and judging large files."""

import math
import time
from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[int, int, str], None]
"""Receives the completed bytes, the total, and the activity: `reading`."""
_FIRST, _PAUSE = 1.0, 5.0  # seconds before the first line, and between two


def unseen(done: int, total: int, doing: str) -> None:
    """Shows no progress."""


class Meter:
    """Sums the progress over several files."""

    def __init__(self, progress: Progress, total: int, doing: str = "reading") -> None:
        self._progress, self.total, self._doing, self._done = progress, total, doing, 0.0

    def add(self, size: float) -> None:
        self._done = min(self._done + size, self.total)
        self._progress(int(self._done), self.total, self._doing)


SILENT = Meter(unseen, 0)


def narrated(say: Callable[[str], None]) -> Progress:
    """Prints progress as lines: `reading: 120 of 400 MB`, the first after one second."""
    due, of = math.inf, (0, "")

    def report(done: int, total: int, doing: str) -> None:
        nonlocal due, of
        now = time.monotonic()
        if of != (total, doing):
            due, of = now + _FIRST, (total, doing)
        elif now >= due:
            due = now + _PAUSE
            say(f"{doing}: {done / 1e6:.0f} of {math.ceil(total / 1e6)} MB")

    return report
