"""What the responses of a step tell, added to its figures with what else is ppo-tui's own."""

import contextlib
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cached_property
from typing import Literal

from launcher.core.errors import UserError
from launcher.health.keys import RUN_MEMORY
from launcher.metrics.records import StepRecord
from launcher.metrics.responses import PREFIX, ResponseFigures
from launcher.record.layout import AttemptDir, RunDir
from launcher.runs.watch.responses import Dump, rows
from launcher.runs.watch.source import records

Guard = Callable[[Literal["responses"]], AbstractContextManager[None]]

_OWN = (PREFIX, *RUN_MEMORY)
_MOST = 1 << 23  # bytes read of one dump
_SHARE = 0.01  # of one core
_AHEAD = 2.0  # seconds of it that may be spent in advance: steps may come in a burst


class ToldByResponses:
    """Adds `responses/...` to the steps of an attempt, in their order, within 1 % of one core.

    Figures of ppo-tui's own that are in its steps.jsonl are taken from there. A step has none whose dump cannot be
    read, or that comes when the time is spent; of a dump that is still being written, those of its whole lines.
    """

    def __init__(self, run: RunDir, attempt: AttemptDir, guard: Guard | None = None) -> None:
        """The counting is done in a block of `guard`; without it no dump is read."""
        self._run, self._attempt, self._guard = run, attempt, guard
        self._figures = ResponseFigures()
        self._since, self._spent = time.monotonic(), 0.0

    def add(self, record: StepRecord) -> None:
        """Adds the figures of one step."""
        if (known := self._recorded.get(record.step)) is not None:
            record.data |= known
        elif self._guard is not None and self._spent <= _SHARE * (time.monotonic() - self._since) + _AHEAD:
            before = time.thread_time()
            with self._guard("responses"):
                self._count(record)
            self._spent += time.thread_time() - before

    def _count(self, record: StepRecord) -> None:
        dump = Dump("rollout", record.step, self._run.rollouts / f"{record.step}.jsonl")
        with contextlib.suppress(OSError):
            if dump.path.is_file():
                record.data |= self._figures.of(rows(dump, _MOST))

    @cached_property
    def _recorded(self) -> dict[int, dict[str, float]]:
        """What is on disk: a supervisor that takes over reads the steps again, and need not count again."""
        found: dict[int, dict[str, float]] = {}
        with contextlib.suppress(UserError):  # a file that cannot be read
            for line in records(self._attempt.steps):
                if any(own.encode() in line for own in _OWN) and (record := StepRecord.from_line(line)) is not None:
                    found[record.step] = {key: value for key, value in record.data.items() if key.startswith(_OWN)}
        return found
