"""Reads one attempt: turns console and file logger into merged steps, events and a judgement.

The supervisor uses it live; `import`, `demo` and `health` use it for a log from elsewhere.
"""

import dataclasses
import shlex
import statistics
import sys
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from launcher.console import reader as console
from launcher.console.phases import ALL_STEPS, OTHER, PHASE_OF_TIMER, TIMED, TRAINING
from launcher.core.secrets import redact
from launcher.core.text import clean, without_login
from launcher.health.checklist import Checklist
from launcher.metrics.frameworks import Framework
from launcher.metrics.merge import Merger
from launcher.metrics.records import StepRecord, trains
from launcher.metrics.timing import median_and_longest, seconds_of, timer_seconds
from launcher.preset.flow import times
from launcher.record.check import flags_of
from launcher.record.levels import Level
from launcher.record.numbering import STEPS, Numbering
from launcher.record.spans import Span
from launcher.record.state import Rollout, RunState, TrackedRun
from launcher.runs.judge.sink import Sink

RECENT = 20  # steps that determine the ETA
_PAUSE = 10  # multiple of the median; longer is a pause, not the pace
_ERRORS = 1000  # maximum lines before the first step that a rebuilt checklist reads
_GAP = 1.0  # seconds between two timers that are a phase of their own
_BY_LINES = TIMED | {"update": tuple(timer for phase in TRAINING for timer in TIMED[phase])}
_OF_SOME_STEPS = ("validate", "save")
_MARKED = ("update", *_OF_SOME_STEPS)
ChecklistMaker = Callable[[Mapping[str, Any]], Checklist]


class Monitor:
    """Follows one attempt.

    `keys`: veRL keys known so far; the console's dump of the resolved configuration completes them, and the checklist
    is then rebuilt (before the first step). `framework`: the program that printed the console, if not veRL. `pinned`
    keys override the dump. `clock` dates the steps of a log that is not live. `tell` adds metrics to a step that are
    neither in the console nor in veRL's file. `before`: the step that the attempt continues.
    """

    played = False  # faster than written: its steps take the logged time
    numbered: Numbering | None = None  # of a whole log; otherwise it is found line by line

    def __init__(
        self,
        sink: Sink,
        make_checklist: ChecklistMaker,
        keys: Mapping[str, Any],
        *,
        file_logger: bool,
        framework: Framework | None = None,
        pinned: Mapping[str, Any] | None = None,
        clock: Callable[[Sequence[StepRecord]], None] | None = None,
        tell: Callable[[StepRecord], None] | None = None,
        before: int | None = None,
    ) -> None:
        self._joined = framework is not None and not file_logger  # only another attempt repeats a step
        self.written_here: bool | None = None  # whether a local process writes the followed log; None: not followed
        self._phases = framework is None or framework.own  # other frameworks' phases are unknown
        self.phase = "config" if self._phases else ""
        self.phase_since: float | None = None
        self._first_step: float | None = None  # when its rollout began
        self.step: int | None = None
        self.total: int | None = None
        self.rollout: Rollout | None = None
        self.trackers: dict[str, TrackedRun] = {}
        self.last_output: float | None = None
        self._date, self._tell = clock, tell
        self.pinned = dict(pinned or {})
        self.keys = {**keys, **self.pinned}
        self.checklist = make_checklist(self.keys)
        self._sink, self._make_checklist = sink, make_checklist
        self.reader = console.ConsoleReader(framework, before=before or 0)
        self._passed, self._timer_ended, self._file_logger = 0, 0.0, file_logger
        self._merger, self._three_decimals = Merger(both=file_logger, date=clock), False
        self._begun = False  # a step line was printed
        self._printed = -1  # the step of the last one
        self._restarted = False  # Ray was started again: another attempt may have been appended to this log
        self._before_steps: deque[console.Notable] = deque(maxlen=_ERRORS)
        self._late: deque[tuple[int, console.Notable]] = deque()  # errors after a step that is not judged yet
        self._mutes: dict[str, bool] = {}
        self._history: list[StepRecord] = []
        self._durations: deque[float] = deque(maxlen=RECENT)
        self._last_t: float | None = None
        self._trained_in: deque[float] = deque(maxlen=RECENT)  # durations without validation and saving
        self._taken: defaultdict[str, deque[float]] = defaultdict(lambda: deque(maxlen=RECENT))  # seconds by phase
        self._spent: defaultdict[str, deque[float]] = defaultdict(lambda: deque(maxlen=RECENT))  # seconds by timer
        self._timer: Span | None = None
        self.stood_still = 0.0  # when a reason was found why nothing happens: the step of that time shows no pace
        self._timed = False  # the trainer's spans show where the run is
        self._told: deque[tuple[str, int]] = deque(maxlen=RECENT)  # phases with their steps
        self._lines = 0  # step lines since the last timer began: spans end where their folder is full

    def history(self, records: list[StepRecord]) -> None:
        """Feeds the steps of earlier attempts to the checklist to continue its baselines."""
        self._history, self.checklist.config.numbering = records, self.numbering or STEPS
        for record in records:
            self.checklist.step(record.step, record.data, t=record.t)

    def mute(self, rule: str, muted: bool = True) -> None:
        """Excludes a rule from the verdict, or includes it again. Raises UserError for an unknown one."""
        self.checklist.mute(rule, muted)
        self._mutes[rule] = muted

    def feed_console(self, chunk: bytes, now: float, passed: int = 0) -> None:
        """Adds new bytes of the console, read at `now`; `passed` earlier bytes were skipped."""
        self.last_output, self._passed = now, passed
        for event in self.reader.feed(chunk):
            self._take(event, now)

    def feed_records(self, records: Iterable[StepRecord], now: float) -> None:
        """Adds steps that an earlier supervisor read, whose lines are no longer in the console."""
        for record in records:
            self._merger.console(record.step, record.data, record.log_offset or 0, now)

    def feed_file(self, lines: list[bytes], now: float) -> None:
        """Adds new lines of veRL's file logger."""
        for line in lines:
            record = StepRecord.from_line(line)
            if record is not None and record.data:
                if self._joined or self.written_here is not None:
                    self._begin(record.step, record.data)
                self._merger.file(record.step, record.data, record.t or now)

    def feed_timers(self, running: Span | None, ended: Iterable[Span], now: float) -> None:
        """Takes in the trainer's spans: the running timer, and the timers that ended since the last call."""
        for span in ended:
            self._timed, self._lines, end = True, 0, span.end or now
            self._timer_ended = max(self._timer_ended, end)
            if not span.start < self.stood_still <= end:
                self._spent[span.name].append(end - span.start)
        if running is not None and running != self._timer:
            self._timed, self._lines = True, 0
            phase = PHASE_OF_TIMER.get(running.name, OTHER)
            first = phase == "validate" and not self._begun
            self._enter("validate-first" if first else phase, running.start, running.step)
        elif running is None and self._timed and self.phase != "final" and now - self._timer_ended >= _GAP:
            self._enter(OTHER, self._timer_ended)
        self._timer = running

    def close(self, now: float) -> list[StepRecord]:
        """Ends the input and releases waiting steps."""
        for event in self.reader.close():
            self._take(event, now)
        return self._judge(self._merger.take())

    def collect(self, now: float, most: int = sys.maxsize) -> list[StepRecord]:
        """Writes and judges the complete steps; returns them."""
        return self._judge(self._merger.take(now, most))

    def tick(
        self, now: float, gpu: tuple[float, float] | None, host: tuple[float, float] | None, usual: float | None = None
    ) -> None:
        """Judges time-dependent values: silence, memory (used and total bytes), and a first step of `usual` seconds."""
        if self.written_here is None or not self.complete:
            first = None if self._first_step is None or self._begun else (self._first_step, usual)
            changes = self.checklist.tick(now, gpu=gpu, host=host, written_here=self.written_here, first_step=first)
            self._sink.health(changes, now)

    @property
    def over(self) -> bool:
        """Whether the console has the final line of a training."""
        return self.reader.over

    @property
    def numbering(self) -> Numbering | None:
        """How its lines count steps; None before the first line without a step number."""
        counted = self.reader.counted
        return self.numbered if counted is None else self.numbered or counted.numbering

    @property
    def complete(self) -> bool:
        """Whether the last step or the end of training was logged."""
        return self.over or (self.total is not None and 0 < self.total <= (self.step or 0))

    @property
    def step_seconds(self) -> float | None:
        """Median duration of the recent steps."""
        return statistics.median(self._durations) if self._durations else None

    @property
    def eta(self) -> float | None:
        """Seconds from the last step to the run's last one: steps, and due validations and savings (once one was seen).

        Uses the mean pace instead of the median: groups that are generated again (DAPO) make single steps long, also
        among the remaining steps.
        """
        if self.total is None or self.step is None or not self._trained_in:
            return None
        if self.step >= self.total:
            return 0.0
        most = _PAUSE * statistics.median(self._trained_in)
        left = (self.total - self.step) * statistics.fmean(min(each, most) for each in self._trained_in)
        for phase, key in (("validate", "trainer.test_freq"), ("save", "trainer.save_freq")):
            every = self.keys.get(key)
            due = (times(self.total, every, last=True) or 0) - (times(self.step, every, last=False) or 0)
            left += due * (median_and_longest(self._taken.get(phase))[0] or 0.0)
        return left

    def state(self, known: RunState, now: float) -> RunState:
        """The `known` state of the run with the monitor's values."""
        checks, stall, eta = self.checklist.checks(), known.stall or self.stall(), self.eta
        done = None if eta is None or self._last_t is None or stall is not None else self._last_t + eta
        return dataclasses.replace(
            known,
            phase=ALL_STEPS if self.written_here is False and self.complete and not self.over else self.phase,
            phase_since=self.phase_since,
            phase_usual=self.phase_usual,
            step=self.step,
            total=self.total,
            eta=eta,
            done=done,
            step_seconds=self.step_seconds,
            rollout=self.rollout,
            stalled=stall is not None,
            stall=stall,
            verdict=str(self.checklist.verdict),
            flags=flags_of(checks),
            checks=tuple(checks),
            numbering=self.numbering or known.numbering,
            trackers=tuple(({each.tracker: each for each in known.trackers} | self.trackers).values()),
        )

    @property
    def phase_usual(self) -> float | None:
        """Usual seconds of the current phase, from its timer's spans or recent steps; None without either."""
        if self._timed:
            spent = [statistics.median(found) for each in TIMED.get(self.phase, ()) if (found := self._spent.get(each))]
            return sum(spent) if spent else None
        return median_and_longest(self._taken.get(self.phase))[0]

    @property
    def pace(self) -> tuple[float, float, float] | None:
        """Time of the last step, then median and maximum interval in seconds; None before the second step."""
        if self._last_t is None or not self._durations:
            return None
        return self._last_t, statistics.median(self._durations), max(self._durations)

    @property
    def stage(self) -> tuple[float | None, float | None, float | None]:
        """The start of the current activity, and its median and maximum seconds in recent steps.

        The activity is the running timer (by its own spans); without one, a phase with a starting line; otherwise the
        whole step.
        """
        if self._timer is not None:
            return self._timer.start, *median_and_longest(self._spent.get(self._timer.name))
        if self.phase in _MARKED and (taken := self._taken.get(self.phase)):
            return self.phase_since, *median_and_longest(taken)
        return self.pace or (self.phase_since, None, None)

    def stall(self) -> str | None:
        """The message of STALL-1 if its flag is active."""
        check = next((each for each in self.checklist.checks() if each.rule == "STALL-1"), None)
        return check.message if check is not None and check.level >= Level.WARN else None

    def _take(self, event: console.Event, now: float) -> None:
        match event:
            case console.StepLine():
                self._begin(event.step, event.data)
                self._begun, self._restarted = True, False
                self._lines += 1
                if self._timed and self._lines > 1:
                    self._timer, self._timed, self.phase = None, False, "rollout"
                if not self._timed:
                    self.phase_since = now  # the next step's rollout, which no line marks
                self._three_decimals = event.three_decimals
                self._merger.console(event.step, event.data, event.offset + self._passed, now)
                self.rollout = None
            case console.PhaseChange():
                self._restarted = self._restarted or (self._begun and event.phase == "ray")
                if not (self._timed and event.phase in TIMED):
                    self._enter(event.phase, now)
            case console.Progress():
                self.total = event.total
            case console.TotalSteps():
                self.total = event.total
            case console.RolloutCount():
                total = event.pending + event.running + event.finished + event.failed
                self.rollout = Rollout(event.finished, event.failed, total)
            case console.ConfigDump():
                self._learn(event.keys)
            case console.Tracked():
                self._track(event)
            case console.Notable() if not self._trained:
                if self._printed in self._merger:
                    self._late.append((self._printed, event))
                    return
                if self.step is None:
                    self._before_steps.append(event)
                self._notice(event, now)

    def _begin(self, step: int, data: Mapping[str, float]) -> None:
        """Begins a step; after an appended attempt, repeated steps replace earlier ones."""
        again = self._joined or (self.written_here is not None and step < self._printed)  # a line may have two parts
        if step <= self._printed and (self._restarted or (again and trains(data))):
            self._judge(self._merger.take())
            self._merger = Merger(both=self._file_logger, date=self._date)
            self._told.clear()
            self._renew_checklist()
        self._printed = step

    @property
    def _trained(self) -> bool:
        """Whether the last step was printed; it is saved then, so that killed processes no longer harm the run."""
        return self.total is not None and self._printed >= self.total and not self._restarted

    def _enter(self, phase: str, now: float, step: int | None = None) -> None:
        """Enters a phase of `step`; without a span it is the step after the last step line."""
        if self._phases and (phase != self.phase or self.phase_since is None):
            if self.phase == "validate-first" and now > (self.phase_since or now):
                self._taken["validate"].append(now - (self.phase_since or now))
            self.phase, self.phase_since = phase, now
            if self._first_step is None and phase == "rollout":
                self._first_step = now
            if not self._begun:
                self._sink.phase(phase, step, now)
            elif phase in _OF_SOME_STEPS:
                self._report(phase, self._printed + 1 if step is None else step, now)
            elif phase == "final" and self._printed not in self._merger:  # otherwise with its step
                self._report(phase, self._printed, now)

    def _report(self, phase: str, step: int, t: float) -> None:
        """Reports a phase of a step once."""
        if (phase, step) not in self._told:
            self._told.append((phase, step))
            self._sink.phase(phase, step, t)

    def _learn(self, keys: Mapping[str, Any]) -> None:
        if self.step is None:
            self.keys = {**self.keys, **keys, **self.pinned}
            self._renew_checklist()
            self.history(self._history)
            for notable in self._before_steps:
                self._notice(notable, None)

    def _track(self, event: console.Tracked) -> None:
        """Records a tracker's address and folder, without logins and other secrets."""
        before = self.trackers.get(event.tracker)
        url = redact(clean(without_login(event.url))) if event.url else (before.url if before else None)
        folder = redact(clean(event.folder)) if event.folder else (before.folder if before else None)
        command = event.show.format(folder=shlex.quote(folder)) if folder and not url and event.show else None
        self.trackers[event.tracker] = TrackedRun(event.tracker, url, folder, command)

    def _renew_checklist(self) -> None:
        self.checklist = self._make_checklist(self.keys)
        for rule, muted in self._mutes.items():
            self.checklist.mute(rule, muted)

    def _notice(self, notable: console.Notable, now: float | None) -> None:
        changes = self.checklist.log_line(notable.line.text, notable.line.number, step=self.step)
        if now is not None:
            self._sink.health(changes, now)

    def _judge(self, records: list[StepRecord]) -> list[StepRecord]:
        if self._tell is not None:
            for record in records:
                self._tell(record)
        if records:
            self._history = []  # the checklist is not rebuilt any more
            self._sink.steps(records)
        self.checklist.config.numbering = self.numbering or STEPS
        for record in records:
            self._measure(record)
            changes = self.checklist.step(record.step, record.data, t=record.t, three_decimals=self._three_decimals)
            self._sink.health(changes, record.t)
            while self._late and self._late[0][0] <= record.step:
                self._notice(self._late.popleft()[1], record.t)
        return records

    def _measure(self, record: StepRecord) -> None:
        """Records the duration of a step and of its phases, unless the run hung in it."""
        before, self._last_t, self.step = self._last_t, record.t, record.step
        spent = {
            phase: sum(timer_seconds(record.data, timer) for timer in timers) for phase, timers in _BY_LINES.items()
        }
        for phase in _OF_SOME_STEPS if self._phases else ():
            if spent[phase] > 0:  # no line marks it, and it ended before the first look
                self._report(phase, record.step, record.t)
        if self.phase == "final" and record.step == self._printed:
            self._report(self.phase, record.step, record.t)
        if (before or 0.0) < self.stood_still <= record.t:
            return
        for phase, seconds in spent.items():
            if seconds > 0:
                self._taken[phase].append(seconds)
        logged = seconds_of(record.data) if self.played else 0.0
        if before is not None and (logged or record.t > before):
            self._durations.append(logged or record.t - before)
            self._trained_in.append(max(0.0, record.t - before - spent["validate"] - spent["save"]))
