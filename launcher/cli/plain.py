"""A run in plain lines: one per step and per change of state, phase and health. For pipes and screen readers."""

import time
from bisect import bisect_right
from itertools import pairwise
from typing import TextIO

from launcher.core.format import SHORT_ID, duration, number, remaining
from launcher.core.text import clean
from launcher.metrics.names import ENTROPY, SCORE, THROUGHPUT, drift
from launcher.record.events import Action, Alert, Event, LevelChange, Note, PhaseChange, StateChange
from launcher.record.layout import RunDir
from launcher.runs.supervise.spawn import adopt
from launcher.runs.watch.reader import RunReader
from launcher.runs.watch.startup import NAMES, STAGES, usual_words


def follow(run: RunDir, out: TextIO, interval: float = 0.5, *, resumed: bool = False) -> int:
    """Prints a run's events (`resumed`: since its last resume); returns 1 if it failed. Ctrl-C leaves it running."""
    reader = RunReader(run.path)
    printer = _Printer(reader, out)
    if resumed:
        printer.begin_at_resume()
    try:
        while True:
            reader.poll()
            printer.print_new()
            if not reader.state.live and not _continues(reader) and not adopt([(run, reader.state)]):
                return printer.end()
            time.sleep(interval)
    except KeyboardInterrupt:
        print(
            f"detached from run {run.id}, which continues; reattach with 'ppo-tui attach {run.id[:SHORT_ID]}'", file=out
        )
        return 0


def _continues(reader: RunReader) -> bool:
    """Whether the recording of `ppo-tui demo` has another attempt."""
    if "replay_of" not in reader.head.keys:
        return False
    from launcher.runs.act.demo import next_part

    return next_part(reader.info, reader.state) is not None


class _Printer:
    def __init__(self, reader: RunReader, out: TextIO) -> None:
        self._reader, self._out = reader, out
        self._events = 0
        self._last: int | None = None
        self._stages = set[str]()  # printed stages since the start
        self._wait: int | None = None  # attempts with steps, until one more has some
        self._resumes = 0

    def begin_at_resume(self) -> None:
        """Skips the events and steps before the newest resume."""
        self._reader.poll()
        events = self._reader.events_since(0)
        for count, event in enumerate(events, 1):
            if isinstance(event.what, Action) and event.what.verb == "resume":
                self._events = self._reader.event_count - len(events) + count
                self._last, self._wait = event.what.step, len(self._reader.series.seams)

    @property
    def _unit(self) -> str:
        return self._reader.state.numbering.unit

    def print_new(self) -> None:
        for event in self._reader.events_since(self._events):
            self._event(event)
        self._events = self._reader.event_count
        steps, seams = self._reader.series.steps, self._reader.series.seams
        if self._wait is not None and len(seams) <= self._wait:
            return
        self._wait = None
        for step in steps[bisect_right(steps, self._last) if self._last is not None else 0 :]:
            self._step(step)
            self._last = step

    def _event(self, event: Event) -> None:
        match event.what:
            case StateChange(before, after):
                if after == "starting":
                    self._stages.clear()
                self._line(f"{before} -> {after}")
            case PhaseChange(phase) if phase in STAGES[1:] and phase not in self._stages:  # the first has no line
                self._stages.add(phase)
                self._line(f"starting: {NAMES[phase]}{self._stage_before(phase)}")
            case Action(verb="resume", step=step, settings=settings):
                self._last, self._wait, self._resumes = step, self._resumes, self._resumes + 1
                self._line(" ".join((f"resume from step {step}", *settings)))
            case LevelChange() as change:
                levels = f"{change.before} -> {change.after}"
                self._line(f"{self._unit} {change.step}: {change.rule} {levels}: {change.message}")
            case Note(text) | Alert(text):
                self._line(text)

    def _stage_before(self, phase: str) -> str:
        """The time of the previous stage: `; Ray took 21s, usually 20s`."""
        found = self._reader.startup(None)
        stages = [stage for stage in found.stages if stage.begun is not None] if found else []
        for before, after in pairwise(stages):
            if after.stage == phase:
                usual = f", usually {usual_words(before.usual)}" if before.usual else ""
                return f"; {NAMES[before.stage]} took {duration(before.seconds)}{usual}"
        return ""

    def _step(self, step: int) -> None:
        total = self._reader.state.total
        parts = [f"{self._unit} {step}/{total}" if total else f"{self._unit} {step}"]
        series = self._reader.series
        moved = drift(series)
        for name, names in (("reward", SCORE), (moved.word, moved.keys), ("entropy", ENTROPY), ("tok/s", THROUGHPUT)):
            found = series.first_of(*names)
            value = found[1].at(step) if found else None
            if value is not None:
                parts.append(f"{name} {number(value)}")
        state = self._reader.state
        if state.eta:
            parts.append(remaining(state.eta, state.done))
        self._line("  ".join(parts))

    def end(self) -> int:
        state = self._reader.state
        word = state.outcome or state.state
        from launcher.runs.watch.history import log_end

        more = log_end(state) if word == "ended" else state.error
        self._line(f"{word}: {more}" if more else word)
        if word == "failed" and state.cause:
            self._line(f"see the cause and the fixes with 'ppo-tui diagnose {self._reader.id[:SHORT_ID]}'")
        return 1 if word in ("failed", "lost") else 0

    def _line(self, text: str) -> None:
        print(clean(text), file=self._out, flush=True)
