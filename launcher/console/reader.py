"""Reads events from a growing console log."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from launcher.console.counted import Counted
from launcher.console.forms import FormLine, FormReader, FormStep
from launcher.console.lines import Line, Piece
from launcher.console.marks import marked_places, places_of, step_places
from launcher.console.phases import PhaseTracker
from launcher.console.scanner import Marked, Scanner
from launcher.metrics.frameworks import Framework


@dataclass(frozen=True)
class StepLine:
    """The metrics of one step. `line` counts from 1; `offset` is the byte where the line starts.

    A step is repeated with more metrics if its line arrived in two parts: the later one is right.
    """

    step: int
    data: dict[str, float]
    line: int
    offset: int
    three_decimals: bool


@dataclass(frozen=True)
class PhaseChange:
    """A phase begins, one of `launcher.console.phases.PHASES`."""

    phase: str
    line: int
    offset: int


@dataclass(frozen=True)
class Progress:
    """veRL's progress bar: completed steps, and the total."""

    step: int
    total: int


@dataclass(frozen=True)
class RolloutCount:
    """Numbers of prompts of the rollout (or validation) by state."""

    pending: int
    running: int
    finished: int
    failed: int


@dataclass(frozen=True)
class TotalSteps:
    """The planned number of steps of this run."""

    total: int


@dataclass(frozen=True)
class Resumed:
    """Training continues from the checkpoint of this step."""

    step: int


@dataclass(frozen=True)
class ConfigDump:
    """The resolved configuration: value by veRL key, such as `actor_rollout_ref.actor.optim.lr`."""

    keys: dict[str, Any]


@dataclass(frozen=True)
class Tracked:
    """The run in a tracker, by address or folder; `show`: the command for a folder."""

    tracker: str
    url: str | None
    folder: str | None
    show: str


@dataclass(frozen=True)
class Notable:
    """A line that reports an error. Repeated lines are reported only at first."""

    line: Line


_REPEATS = 20  # reported lines between two steps that differ only in their digits
_KINDS = 1024  # kinds of lines that are counted at a time
_BEGIN = 300  # bytes of a line that make its kind

Event = StepLine | PhaseChange | Progress | RolloutCount | TotalSteps | Resumed | ConfigDump | Tracked | Notable


class ConsoleReader:
    """Reads a console log in chunks of any size, which do not affect the events."""

    def __init__(self, framework: Framework | None = None, *, only_steps: bool = False, before: int = 0) -> None:
        """`framework`: the log's, if not veRL. `only_steps`: faster, without other lines. `before`: see `Counted`."""
        self._form = FormReader(framework, before) if framework is not None and framework.lines else None
        others = None if only_steps else marked_places
        places = places_of(self._form.hints, others) if self._form is not None else others or step_places
        self._scanner = Scanner(places, self._form)
        self._tracker = PhaseTracker()
        self._total: int | None = None
        self._events: list[Event] = []
        self._repeated: Counter[bytes] = Counter()
        self._closed = False  # veRL has printed its last line, and no step since

    @property
    def over(self) -> bool:
        """Whether the final line of the training was printed."""
        return self._closed or (self._form is not None and self._form.over)

    @property
    def counted(self) -> Counted | None:
        """The step lines, if none has a number."""
        return self._form.counted if self._form is not None else None

    def feed(self, data: bytes) -> list[Event]:
        """The events of the lines completed by `data`."""
        return self._take(self._scanner.feed(data))

    def close(self) -> list[Event]:
        """The events of a last line without a newline."""
        events = self._take(self._scanner.close())
        if self._form is not None:
            self._add_steps(self._form.close())
            events += self._take([])
        return events

    def _take(self, lines: list[Marked]) -> list[Event]:
        if lines and not self._tracker.phase:
            self._enter(self._tracker.begin(), lines[0])
        for line in lines:
            if self._form is not None and line.form is not None:
                self._take_form(self._form, line.form, line.piece)
            elif line.mark.name or line.step or line.config:
                self._take_marked(line)
        events, self._events = self._events, []
        return events

    def _take_form(self, form: FormReader, line: FormLine, piece: Piece) -> None:
        if line.total is not None and line.total != self._total:
            self._total = line.total
            self._events.append(TotalSteps(line.total))
        self._add_steps(form.take(line, piece))

    def _add_steps(self, steps: list[FormStep]) -> None:
        for step in steps:
            if self._form is not None and self._form.settings:
                self._events.append(ConfigDump(self._form.framework.keys(self._form.settings)))
                self._form.settings = {}
            self._repeated.clear()
            self._events.append(StepLine(step.step, step.data, step.line, step.offset, three_decimals=False))
            if phase := self._tracker.step(self._total is not None and step.step >= self._total):
                self._events.append(PhaseChange(phase, step.line, step.offset))

    def _take_marked(self, line: Marked) -> None:
        mark, match, tracker, add = line.mark, line.match, self._tracker, self._events.append
        if line.config is not None:
            add(ConfigDump(line.config))
            tracker.configured(line.config)
        if mark.name == "progress":
            add(Progress(int(match["done"]), int(match["of"])))
        if line.step is not None:
            self._repeated.clear()
            self._closed = False
            step, (number, offset, _, _) = line.step, line.piece
            add(StepLine(step.step, step.data, number, offset, step.three_decimals))
            self._enter(tracker.step(self._total is not None and step.step >= self._total), line)
        elif mark.tracker:
            found = {name.rpartition("_")[2]: value for name, value in match.groupdict().items() if value is not None}
            text = {kind: value.decode(errors="replace").strip() for kind, value in found.items()}
            add(Tracked(mark.tracker, text.get("url"), text.get("folder"), mark.show))
        elif mark.trouble:
            if not self._repeats(line.piece[2]):
                add(Notable(line.line))
        elif mark.name == "rollout_count":
            add(RolloutCount(*(int(match[state]) for state in ("pending", "running", "finished", "failed"))))
            self._enter(tracker.rollout_count(), line)
        else:
            if mark.name == "total":
                self._total = int(match["total"])
                add(TotalSteps(self._total))
            elif mark.name == "resumed":
                add(Resumed(int(match["at"])))
            self._closed = self._closed or mark.name == "final"
            self._enter(tracker.mark(mark.name, mark.phase, match["stamp"]), line)

    def _repeats(self, raw: bytes) -> bool:
        if len(self._repeated) >= _KINDS:
            self._repeated.clear()
        kind = raw[:_BEGIN].translate(None, b"0123456789")
        self._repeated[kind] += 1
        return self._repeated[kind] > _REPEATS

    def _enter(self, phase: str | None, line: Marked) -> None:
        if phase:
            self._events.append(PhaseChange(phase, *line.piece[:2]))
