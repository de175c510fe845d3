"""events.jsonl: the events of a run, one object per line."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeAlias, TypeVar

import orjson

from launcher.core import clock
from launcher.core.files import Appender
from launcher.metrics.records import parse_object
from launcher.record.json import FROM, RARE, SCHEMA, TO, Record
from launcher.record.levels import Level


@dataclass(frozen=True, slots=True)
class StateChange(Record):
    """The run changed its state."""

    kind: ClassVar[str] = "state"
    before: str = field(metadata=FROM)
    after: str = field(metadata=TO)


@dataclass(frozen=True, slots=True)
class PhaseChange(Record):
    """The run entered a phase, after `step`."""

    kind: ClassVar[str] = "phase"
    phase: str
    step: int | None = None


@dataclass(frozen=True, slots=True)
class LevelChange(Record):
    """A health rule changed its level at a step.

    For an alarming change, `cause` is the rule of the flag that lists it, and `lead` the title of its cause.
    """

    kind: ClassVar[str] = "health"
    step: int
    rule: str
    before: Level = field(metadata=FROM)
    after: Level = field(metadata=TO)
    message: str = ""
    cause: str = field(default="", metadata=RARE)
    lead: str = field(default="", metadata=RARE)

    @property
    def rose(self) -> bool:
        """Whether a flag is new or worse."""
        return self.after > max(self.before, Level.OK)

    @property
    def alarming(self) -> bool:
        """Whether a flag rose to an alerting level."""
        return self.rose and self.after >= Level.WARN

    @property
    def notable(self) -> bool:
        """Whether a flag rose, fell or cleared; other changes are rules that started to judge."""
        return max(self.before, self.after) > Level.OK


@dataclass(frozen=True, slots=True)
class Action(Record):
    """A request to the run: `verb` by a person, a screen or a rule.

    `settings`: a resume's settings. `findings`: errors ignored by a forced start. `after`: the run whose settings were
    edited for this one.
    """

    kind: ClassVar[str] = "action"
    verb: str
    by: str = "user"
    rule: str | None = field(default=None, metadata=RARE)
    step: int | None = field(default=None, metadata=RARE)
    settings: tuple[str, ...] = field(default=(), metadata=RARE)
    findings: tuple[dict[str, Any], ...] = field(default=(), metadata=RARE)
    after: str | None = field(default=None, metadata=RARE)


@dataclass(frozen=True, slots=True)
class Removal(Record):
    """Checkpoints of the run, by step, that were missing from the disk after `step`."""

    kind: ClassVar[str] = "removal"
    step: int
    checkpoints: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class DriverExit(Record):
    """The driver ended: code, signal and requester, as in exit.json."""

    kind: ClassVar[str] = "exit"
    code: int | None = None
    signal: str | None = None
    requested_by: str | None = None


@dataclass(frozen=True, slots=True)
class Alert(Record):
    """An error of the `on_alert` command."""

    kind: ClassVar[str] = "alert"
    text: str


@dataclass(frozen=True, slots=True)
class Note(Record):
    """A remark for readers of the run."""

    kind: ClassVar[str] = "note"
    text: str


W = TypeVar("W")
What: TypeAlias = StateChange | PhaseChange | LevelChange | Action | Removal | DriverExit | Alert | Note
_KINDS: dict[str, type[What]] = {
    kind.kind: kind for kind in (StateChange, PhaseChange, LevelChange, Action, Removal, DriverExit, Alert, Note)
}


@dataclass(frozen=True, slots=True)
class Event:
    """One event at `t` in unix seconds."""

    t: float
    what: What

    @classmethod
    def from_line(cls, line: bytes) -> "Event | None":
        """The event in a line of events.jsonl; None if damaged or from a later version."""
        found = parse_object(line) or {}
        t, kind = found.get("t"), _KINDS.get(str(found.get("kind")))
        try:
            return cls(float(t), kind.from_json(found)) if kind and isinstance(t, (int, float)) else None
        except (ValueError, OverflowError):
            return None

    def to_line(self) -> bytes:
        """The line of events.jsonl, newline included."""
        what = {"schema": SCHEMA, "t": round(self.t, 3), "kind": self.what.kind, **self.what.to_json()}
        return orjson.dumps(what, option=orjson.OPT_APPEND_NEWLINE)


class EventLog:
    """Appends events. A `patient` log waits while the disk is full, as `launcher.core.files.Appender` does."""

    def __init__(self, path: Path, *, patient: bool = False) -> None:
        self._file = Appender(path, patient=patient)
        self.flush = self._file.flush

    def add(self, what: What, t: float | None = None) -> None:
        """Writes one event at `t` (unix seconds) [default: now]."""
        self._file.add([Event(clock.now() if t is None else t, what).to_line()])


def read_kind(path: Path, kind: type[W]) -> list[W]:
    """The events of one kind, oldest first."""
    return [event.what for event in read_events(path) if isinstance(event.what, kind)]


def read_events(path: Path) -> Iterator[Event]:
    """All events so far, oldest first, without damaged lines."""
    if path.exists():
        for line in path.read_bytes().splitlines():
            if (event := Event.from_line(line)) is not None:
                yield event
