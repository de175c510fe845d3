"""Takes over an attempt whose supervisor was killed.

Reads console and file logger from the first byte, like its predecessor, and finds the same steps, phases and flags.
Omits those already on disk, so that nothing is missing or recorded twice.
"""

import contextlib
from collections import Counter, deque
from collections.abc import Callable, Iterable

import psutil

from launcher.core import clock
from launcher.core.tail import records
from launcher.metrics.records import StepRecord
from launcher.metrics.timing import seconds_of
from launcher.record.events import Action, Event, EventLog, LevelChange, PhaseChange, StateChange, read_events
from launcher.record.layout import AttemptDir, RunDir
from launcher.record.process import ProcessId, run_processes
from launcher.record.state import RunState
from launcher.runs.supervise.disk import DiskSink


class CatchingUp(DiskSink):
    """A sink that writes only results that no earlier supervisor of the attempt wrote."""

    def __init__(
        self, run: RunDir, attempt: AttemptDir, events: EventLog, on_change: Callable[[LevelChange, float], None]
    ) -> None:
        super().__init__(attempt, events, on_change, patient=True)
        self._attempt = attempt
        self.since = clock.now()
        self.until: float | None = None  # time at which it caught up; later events happen now
        self._times: dict[int, deque[float]] = {}
        for line in records(attempt.steps):
            if (found := StepRecord.from_line(line)) is not None:
                self._times.setdefault(found.step, deque()).append(found.t)
        before = (event.what for event in events_of_attempt(run))
        self._written = Counter(_key(what) for what in before if isinstance(what, LevelChange | PhaseChange))
        self._again: set[int] = set()  # records that are on disk, by id
        self._t = 0.0
        self.missed = 0

    def date(self, record: StepRecord) -> float:
        """The time of a step: recorded, or estimated, as step lines have no time."""
        if times := self._times.get(record.step):
            self._again.add(id(record))
            self._t = times.popleft()
        elif self.until is None and self._t:
            self._t = min(self._t + seconds_of(record.data), record.t)
        else:
            self._t = record.t
        return self._t

    def recorded(self, end: int) -> list[StepRecord]:
        """Steps on disk whose lines began before byte `end` of the console, which may have lost them."""
        steps = (StepRecord.from_line(line) for line in records(self._attempt.steps))
        return [each for each in steps if each is not None and (each.log_offset or 0) < end]

    def steps(self, records: list[StepRecord]) -> None:
        fresh = [record for record in records if id(record) not in self._again]
        self._again.difference_update(map(id, records))
        self.missed += len(fresh) if self.until is None else 0
        super().steps(fresh)

    def phase(self, phase: str, step: int | None, t: float) -> None:
        if not self._known(PhaseChange(phase, step)):
            super().phase(phase, step, t)

    def health(self, changes: Iterable[LevelChange], t: float) -> None:
        super().health((change for change in changes if not (change.notable and self._known(change))), t)

    def _known(self, what: LevelChange | PhaseChange) -> bool:
        key = _key(what)
        known = self.until is None and self._written[key] > 0
        self._written[key] -= known
        return known


def _key(what: LevelChange | PhaseChange) -> object:
    """The key of an event. A flag about the log may have another step than before."""
    return (what.rule, what.before, what.after) if isinstance(what, LevelChange) else what


def events_of_attempt(run: RunDir) -> list[Event]:
    """The events since the start of the newest attempt."""
    events: list[Event] = []
    for event in read_events(run.events):
        if isinstance(event.what, StateChange) and event.what.after == "starting":
            events.clear()
        events.append(event)
    return events


def who_asked(run: RunDir) -> str | None:
    """Who requested the end of the newest attempt; None without a request."""
    actions = [event.what for event in events_of_attempt(run) if isinstance(event.what, Action)]
    return next((action.by for action in reversed(actions) if action.verb == "stop"), None)


def driver_of(state: RunState, run_id: str, attempt: AttemptDir) -> ProcessId | None:
    """The driver of an attempt, even if its supervisor was killed before recording it.

    Child processes share its environment and may outlive it: the driver has other arguments.
    """
    if state.driver is not None:
        return state.driver
    argv = list(attempt.read_launch().argv)
    for pid in run_processes(run_id, attempt.number):
        with contextlib.suppress(psutil.Error):
            if psutil.Process(pid).cmdline() == argv:
                return ProcessId.of(pid)
    return None
