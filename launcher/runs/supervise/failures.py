"""Errors inside a supervisor: no part's failure harms the run or other parts."""

import contextlib
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Literal, TypeAlias

from launcher.core import clock
from launcher.record.damage import Failure, Failures
from launcher.record.layout import RunDir

Part: TypeAlias = Literal[
    "alerts",
    "checkpoints",
    "console",
    "console size",
    "diagnosis",
    "history",
    "log",
    "machine",
    "metrics",
    "requests",
    "responses",
    "retry",
    "rules",
    "scores",
    "spans",
    "stalls",
    "state",
    "steps",
]
Guard: TypeAlias = Callable[[Part], AbstractContextManager[None]]
"""A block for the work of one part: records errors instead of raising them."""

_LONGEST = 200  # characters of an error


class FailureLog:
    """Counts the failures of a run by part, kind of error and place, and records each in failures.json.

    `report` gets each failure that is new in this supervisor. Threads may share a log.
    """

    def __init__(self, run: RunDir, attempt: int, report: Callable[[Failure], None]) -> None:
        self._path, self._attempt, self._report = run.failures, attempt, report
        earlier = Failures.read(run.failures) or Failures()
        self._all = {(each.part, each.kind, each.place): each for each in earlier.failures}
        self._reported: set[tuple[str, str, str]] = set()
        self._lock = threading.Lock()

    @property
    def summary(self) -> tuple[Failure, ...]:
        """All failures of the run so far, without their tracebacks."""
        with self._lock:
            return tuple(replace(each, traceback="") for each in self._all.values())

    @contextlib.contextmanager
    def guard(self, part: Part) -> Iterator[None]:
        """Records errors that the block raises."""
        try:
            yield
        except Exception as error:
            now, kind = clock.now(), type(error).__name__
            frame = traceback.extract_tb(error.__traceback__)[-1]
            key = (part, kind, f"{frame.filename}:{frame.lineno}")
            with self._lock:
                known, new = self._all.get(key), key not in self._reported
                self._reported.add(key)
                if known is None:
                    text = f"{kind}: {' '.join(str(error).split())}"[:_LONGEST]
                    trace = "".join(traceback.format_exception(error))
                    known = Failure(part, text, key[2], kind, self._attempt, 0, now, None, trace)
                failure = self._all[key] = replace(known, times=known.times + 1, last=now)
            if new:
                with contextlib.suppress(OSError):  # the log of the supervisor, on a full disk
                    traceback.print_exception(error)
                self._report(failure)
            if new or failure.times & (failure.times - 1) == 0:  # a kill then loses little of the count
                with contextlib.suppress(OSError):
                    self.write()

    def write(self) -> None:
        """Replaces failures.json, if there are failures. Raises OSError."""
        with self._lock:
            if self._reported:
                Failures(tuple(self._all.values())).write(self._path)
