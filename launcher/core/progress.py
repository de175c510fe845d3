"""How far the reading of large files is."""

import math
import time
from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[int, int], None]
"""Gets the bytes that were read so far, and all of them."""
_FIRST, _PAUSE = 1.0, 5.0  # seconds before the first line, and between two


def unseen(done: int, total: int) -> None:
    """Shows no progress."""


class Meter:
    """Adds up what was read of several files."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress, self.total, self._done = progress, total, 0.0

    def add(self, size: float) -> None:
        self._done = min(self._done + size, self.total)
        self._progress(int(self._done), self.total)


def narrated(say: Callable[[str], None]) -> Progress:
    """Prints progress as lines: `reading: 120 of 400 MB`, the first one a second after the reading began."""
    due = math.inf

    def report(done: int, total: int) -> None:
        nonlocal due
        now = time.monotonic()
        if due == math.inf:
            due = now + _FIRST
        elif now >= due:
            due = now + _PAUSE
            say(f"reading: {done / 1e6:.0f} of {math.ceil(total / 1e6)} MB")

    return report
