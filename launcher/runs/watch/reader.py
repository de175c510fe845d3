"""A read-only view that follows a run directory, for the screen and `--plain`."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from launcher.console.lines import LineSplitter
from launcher.core.errors import UserError
from launcher.core.tail import LineTail, Tail
from launcher.metrics.records import StepRecord
from launcher.metrics.scores import ScoreCounts
from launcher.metrics.store import SeriesStore
from launcher.record.events import Event
from launcher.record.info import RunInfo
from launcher.record.layout import AttemptDir, RunDir
from launcher.record.machine import MachineSample
from launcher.record.numbering import STEPS, Numbering
from launcher.record.state import REMOVED, RunState, current
from launcher.runs.watch.history import elapsed
from launcher.runs.watch.machine_history import MachineHistory
from launcher.runs.watch.possible import Refusals, refusals
from launcher.runs.watch.startup import Startup, Usual, startup, step_before, usual_start, work_of
from launcher.runs.watch.steps import StepTail, inherited_steps, parent_of

if TYPE_CHECKING:
    from launcher.preset.effective import EffectiveConfig
    from launcher.record.problem import Problem
    from launcher.runs.watch.run_diagnosis import Explanation

ERRORS = "ERR-1"  # the health rule about errors in the log
LOG_LINES = 200  # for the dashboard's tail; the log screen reads the file itself
_LOG_TAIL = 1 << 16  # bytes before the end at which a console that is there already is taken up
_LOG_SKIP = 1 << 22  # bytes that a log may grow at once; of more, only the tail is worth reading
_EVENTS = 10_000  # a rule that comes and goes for weeks must not fill the memory


class RunReader:
    """Follows one run. `poll` reads new data and returns the changed parts; nothing else reads the disk.

    `state`: from `launcher.record.state.current`, with the duration of an ended run. `series`: all attempts joined.
    `scores`: of the responses per step, where the supervisor counted them.
    `parent`: the steps of the forked run, including inherited ones. `machine`: samples of gpu.jsonl. `log`: clean lines
    of the newest console. `events` and `log` are the newest ones; `event_count` and `log_count` include dropped ones.
    `explanation`: why the run failed or what its errors mean, after a call of `explain`. `refusals`: actions that the
    run refuses now. `kept`: steps of its checkpoints, if known.
    """

    def __init__(self, directory: Path) -> None:
        self.dir = RunDir(directory)
        self.id = self.dir.id
        self.head = self.dir.read_head()
        self.name = self.head.name or self.id
        self.state = RunState("queued")
        self._current: RunState | None = None
        self._numbering = STEPS
        self.series = SeriesStore()
        self.scores: dict[int, ScoreCounts] = {}
        self.events: deque[Event] = deque(maxlen=_EVENTS)
        self.event_count = 0
        self.machine = MachineHistory()
        self.log: deque[str] = deque(maxlen=LOG_LINES)
        self.log_count = 0
        self.explanation: Explanation | None = None
        self._configured: tuple[RunInfo, EffectiveConfig | None] | None = None
        self.explaining = False  # whether an explanation is being made
        self._explained: object = None  # the trouble that it is about
        self.refusals: Refusals = {}
        self.kept: list[int] | None = None
        self._usual: Usual | None = None  # seconds of the stages of a start
        self._before = 0  # the step of the checkpoint that the newest attempt began with
        self._events = LineTail(self.dir.events)
        self._samples = LineTail(self.dir.machine)
        self._steps = StepTail(self.dir)
        parent = parent_of(self.info.parent) if "after" in self.head.keys else None
        self.parent = SeriesStore() if parent else None
        self._parent_steps = StepTail(parent) if parent else None
        self._logged: AttemptDir | None = None  # the attempt of the open console
        self._cut = False  # whether reading started in the middle
        self._console: Tail | None = None
        self._splitter = LineSplitter()

    @functools.cached_property
    def info(self) -> RunInfo:
        """run.yaml."""
        return self.dir.read_info()

    def poll(self) -> set[str]:
        """Reads new data; returns the changed parts: "state", "steps", "events", "machine", "log"."""
        parts = {
            "state": self._read_state,
            "events": self._read_events,
            "machine": self._read_samples,
            "steps": self._read_steps,
            "log": self._read_log,
        }
        changed = {name for name, read in parts.items() if read()}
        if changed & {"state", "steps", "events"}:
            self.refusals = refusals(self.dir, self.state, self.head, self.events)
            from launcher.runs.watch.checkpoints import kept_steps  # no frame waits for it

            self.kept = kept_steps(self.dir)
        return changed

    def events_since(self, count: int) -> list[Event]:
        """The events after the first `count`."""
        fresh = min(self.event_count - count, len(self.events))
        return [self.events[index] for index in range(-fresh, 0)]

    @property
    def unexplained(self) -> bool:
        """Whether the run failed, or printed other errors, since the last `explain`."""
        return self.trouble != self._explained

    def explain(self) -> None:
        """Reads the whole log for `explanation`; 100 MB take ten seconds."""
        self._explained, meaning = self.trouble, None
        if self._explained is not None:
            from launcher.runs.watch.run_diagnosis import explanation

            self.explaining = True
            with contextlib.suppress(UserError):  # a log that cannot be read
                meaning = explanation(self.dir)
        self.explanation, self.explaining = meaning, False

    @property
    def trouble(self) -> object:
        """The failure or stop to explain, or the message of the rule about errors; None without either."""
        state = self.state
        if state.failed or "stopped" in (state.state, state.outcome):
            return state.state, state.attempt
        errors = next((check for check in state.checks if check.rule == ERRORS and check.on), None)
        return errors and (state.attempt, errors.message)

    @property
    def config(self) -> EffectiveConfig | None:
        """The configuration of the run's preset; None for a log without one."""
        if self._configured is None or self._configured[0] is not self.info:
            from launcher.preset.settle import configuration

            preset = self.info.preset
            self._configured = self.info, None if preset is None else configuration(preset)
        return self._configured[1]

    @property
    def problem(self) -> Problem | None:
        """The hang of a live run, or the result of `explain`: why the run failed, or what its errors mean."""
        if (found := self.state.standstill) is not None and self.state.live:
            from launcher.runs.watch.stalls import problem_of

            return problem_of(found, None, self.config)
        return self.explanation.problem if self.explanation else None

    def startup(self, now: float | None) -> Startup | None:
        """The progress of the newest attempt's start; None after its first step."""
        usual, work = self._usual or Usual({}), work_of(self.dir, self.state.attempt)
        return startup(self.events, self.state, usual, now, before=self._before, work=work)

    def _read_state(self) -> bool:
        # damage to run.yaml, which takes longer to find than all else, is told by the second look
        state = current(self.dir, settings=self._current is not None)
        if self._current is not None and state.error == REMOVED:  # the screen keeps the last state
            state = dataclasses.replace(self._current, state="lost", error=REMOVED, driver_alive=False)
        if state == self._current:
            return False
        if self._current is None or state.attempt != self._current.attempt:
            self._before = step_before(self.dir, state.attempt)
        if state.numbering != self._numbering:  # known only after the end of a log
            self._numbering, self._steps = state.numbering, StepTail(self.dir)
            self.series = SeriesStore(state.numbering.unit)
            self._events, self.event_count = LineTail(self.dir.events), 0
            self.events.clear()
        self._current, self.state = state, state.shown
        if not state.live:
            self.state = dataclasses.replace(self.state, seconds=elapsed(self.dir, state, now=state.updated))
        if self._usual is None and self.startup(None) is not None:
            self._usual = usual_start(self.dir, self.head)
        return True

    def _read_events(self) -> bool:
        before = self.event_count
        for line in _new_lines(self._events):
            if (event := Event.from_line(line)) is not None:
                self.events.append(dataclasses.replace(event, what=self._numbering.shown(event.what)))
                self.event_count += 1
        return self.event_count != before

    def _read_samples(self) -> bool:
        before = len(self.machine.times)
        for line in _new_lines(self._samples):
            if (sample := MachineSample.from_line(line)) is not None:
                self.machine.add(sample)
        return len(self.machine.times) != before

    def _read_steps(self) -> bool:
        if self.parent is not None and self._parent_steps is not None:
            if self._parent_steps.attempt is None:  # not read yet: a fork continues its own parent's steps
                self.parent.add_all(inherited_steps(self._parent_steps.run), 0)
            _take(self._parent_steps, self.parent, {})
        return _take(self._steps, self.series, self.scores, self._numbering)

    def _read_log(self) -> bool:
        attempt = self._steps.attempt
        if attempt is None:
            return False
        size = 0
        with contextlib.suppress(OSError):
            size = attempt.console.stat().st_size
        if self._console is None or attempt is not self._logged or size - self._console.offset > _LOG_SKIP:
            begin = max(0, size - _LOG_TAIL)
            self._console, self._logged = Tail(attempt.console, begin), attempt
            self._splitter, self._cut = LineSplitter(), begin > 0
        before = self.log_count
        while chunk := self._console.read():
            for line in self._splitter.feed(chunk):
                if self._cut and line.number == 1:
                    continue  # continues a line that began before the tail
                if not line.text.strip():
                    continue  # blank, or output of a progress bar before its carriage return
                self.log.append(f"({line.source}) {line.text}" if line.source else line.text)
                self.log_count += 1
        return self.log_count != before


def _take(tail: StepTail, store: SeriesStore, scores: dict[int, ScoreCounts], numbering: Numbering = STEPS) -> bool:
    """Adds the new steps to the store, and their scores; returns whether there were any."""
    fresh = False
    for attempt, lines in tail.read():
        records = [record for line in lines if (record := StepRecord.from_line(line)) is not None]
        for record in records if numbering.every != 1 else ():
            record.step = numbering.step(record.step)
        store.add_all(records, attempt)
        for record in records:
            if record.scores is not None:
                scores[record.step] = record.scores
            else:  # a resumed attempt may repeat the step
                scores.pop(record.step, None)
        fresh = fresh or bool(records)
    return fresh


def _new_lines(tail: LineTail) -> Iterator[bytes]:
    while lines := tail.read():
        yield from lines
