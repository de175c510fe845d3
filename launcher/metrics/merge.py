"""Merges veRL's console and file logger into one record per step.

The console may lose its last step (Ray's log forwarder ends with the driver), and old versions round its numbers. The
file logger writes nan and inf as null. So the file's digits win, a console nan or inf replaces the file's null, and a
step in either source counts.
"""

import math
import sys
from collections.abc import Callable, Mapping, Sequence

from launcher.metrics.records import StepRecord, is_step, trains

GRACE = 5.0  # seconds a step waits for its other source: Ray forwards console lines within about one


def merge(console: dict[str, float] | None, file: dict[str, float] | None) -> dict[str, float]:
    """The metrics of one step from one or two sources."""
    if not console or not file:
        return dict(file or console or {})
    merged = {**console, **file}
    for key, value in file.items():
        if math.isnan(value) and key in console and not math.isfinite(console[key]):
            merged[key] = console[key]
    return merged


class Merger:
    """Pairs the two sources of one attempt and returns each step once, in order.

    `both`: a file logger is expected; without one, console steps do not wait. `date` dates steps that arrive together.
    """

    def __init__(self, both: bool, date: Callable[[Sequence[StepRecord]], None] | None = None) -> None:
        self._both, self._date = both, date
        self._ready: list[StepRecord] = []
        self._waiting: dict[int, StepRecord] = {}
        self._console: dict[int, dict[str, float]] = {}
        self._file: dict[int, dict[str, float]] = {}
        self._done: set[int] = set()

    def __contains__(self, step: int) -> bool:
        """Whether a step waits to be taken."""
        return step in self._waiting

    def console(self, step: int, data: dict[str, float], offset: int, now: float) -> None:
        """Takes in a step line of the console, which starts at byte `offset`."""
        if self._fresh(step, data) and is_step(step):
            self._console[step] = data
            record = self._waiting.setdefault(step, StepRecord(step, now, offset, {}))
            record.log_offset = offset

    def file(self, step: int, data: dict[str, float], now: float) -> None:
        """Takes in a record of the file logger."""
        if self._fresh(step, data):
            self._file[step] = data
            self._waiting.setdefault(step, StepRecord(step, now, None, {}))

    def _fresh(self, step: int, data: Mapping[str, float]) -> bool:
        """Whether the step is new, or has a validation logged after it."""
        return step not in self._done or not (self._both or trains(data))

    def take(self, now: float = math.inf, most: int = sys.maxsize) -> list[StepRecord]:
        """Removes and returns steps that are complete or have waited `GRACE` (all of them at `now` = infinity)."""
        ready: list[StepRecord] = []
        for step, record in sorted(self._waiting.items()):
            complete = not self._both or (step in self._console and step in self._file)
            if not complete and 0 <= now - record.t < GRACE:  # negative if the clock was set back
                break  # later steps wait as well: steps.jsonl is in order
            record.data = merge(self._console.pop(step, None), self._file.pop(step, None))
            del self._waiting[step]
            self._done.add(step)
            ready.append(record)
        if self._date is not None:
            self._date(ready)
        self._ready += ready
        taken, self._ready = self._ready[:most], self._ready[most:]
        return taken
