"""The history of a run: its duration, its first flag, events since the last look."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import MappingProxyType

from launcher.core.text import clean
from launcher.health.catalogue import families
from launcher.record.check import Check
from launcher.record.events import Action, Event, LevelChange, read_kind
from launcher.record.layout import RunDir
from launcher.record.levels import Level
from launcher.record.numbering import STEPS, Numbering
from launcher.record.state import ENDED, RunState

Spans = Mapping[int, tuple[float, float]]
"""Attempt -> start and end of its steps, unix seconds."""


def elapsed(
    run: RunDir, state: RunState, spans: Spans = MappingProxyType({}), now: float | None = None
) -> float | None:
    """Seconds of all attempts with their start-up, without the pauses in between; None if unknown.

    An attempt without a recorded start or end counts with its steps in `spans`. `now` is the end of a live run; a lost
    one ends with its last sign of life.
    """
    seconds = 0.0
    for number in (1,) if state.attempt == 1 else run.attempt_numbers():
        newest, attempt = number == state.attempt, run.attempt(number)
        begin, end = spans.get(number, (None, None))
        # of the newest attempt state.json has what launch.json and exit.json say: a list of 1,000 runs reads neither
        begin = (newest and state.started) or attempt.read_launch().created or begin
        if newest and state.live:
            end = now or time.time()
        elif newest and (told := state.exit.t if state.exit else state.ended):
            end = told
        else:
            record = attempt.read_exit()
            end = (record and record.t) or end or (now if newest else None)
        if begin is not None and end is not None:
            seconds += max(0.0, end - begin)
    return seconds or None


@dataclass(frozen=True)
class Onset:
    """The first step that led to a flag. `rose`: the step at which the flag reached `level`."""

    rule: str
    step: int
    rose: int
    level: Level

    @property
    def told(self) -> str:
        """The flag with its step in the events and on the dashboard."""
        return f"{self.rule} rose at step {self.rose}"


def onset_of(change: LevelChange, debounce: tuple[int, ...], first: int = 1) -> Onset:
    """The oldest of the last `debounce[1]` steps with a crossed limit; not before the run's `first` step."""
    window = debounce[1] if len(debounce) > 1 else 1
    return Onset(change.rule, max(change.step - window + 1, first), change.step, change.after)


def check_counts(check: Check) -> bool:
    """Whether a flag of this rule is about training, so that another setting may help."""
    family = families().get(check.family)
    return not check.muted and not (family and family.of_machine)


def kept_rises(events: Iterable[Event]) -> list[LevelChange]:
    """The flags at steps that the run still has: a resume repeats those after its checkpoint."""
    found: list[LevelChange] = []
    for event in events:
        match event.what:
            case Action(verb="resume", step=int(step)):
                found = [change for change in found if change.step <= step]
            case LevelChange(rose=True) as change:
                found.append(change)
    return found


def alarms(run: RunDir) -> frozenset[str]:
    """Ids of the rules that flagged a run at WARN or CRITICAL."""
    return frozenset(change.rule for change in read_kind(run.events, LevelChange) if change.alarming)


def stall_report(run: RunDir) -> tuple[Path, list[str]] | None:
    """The newest attempt's `stall.txt` and its lines; None without one. Never raises."""
    last = run.last_attempt()
    if last is None:
        return None
    try:
        text = last.stall.read_text("utf-8", errors="replace")
    except OSError:
        return None
    return last.stall, [clean(line) for line in text.splitlines()]


@dataclass(frozen=True)
class Missed:
    """Events that the user missed. `rises`: new flags, worst first, only the latest of each rule."""

    since: float
    rises: tuple[LevelChange, ...]
    end: str | None
    numbering: Numbering = STEPS


def missed(events: Iterable[Event], state: RunState, look: float | None) -> Missed | None:
    """Important events after `look`, or None.

    Without a look, they count from the start of the run, because somebody started it. An imported run ended before, so
    nothing was missed.
    """
    since = look if look is not None else state.created
    if state.state == "imported" or since is None:
        return None
    latest: dict[str, LevelChange] = {}
    for event in events:
        match event.what:
            case LevelChange(rule=rule) as change if event.t > since and change.alarming and rule not in state.muted:
                latest.pop(rule, None)
                latest[rule] = change
    rises = sorted(latest.values(), key=lambda change: -change.after)
    end = state.state if state.state in ENDED and ended(state) > since else None
    return Missed(since, tuple(rises), end, state.numbering) if rises or end else None


def log_end(state: RunState) -> str:
    """The time of the last addition to a log whose program's end was not observed; otherwise why it ended."""
    return (
        state.error
        or f"no output since {datetime.fromtimestamp(ended(state)):%Y-%m-%d %H:%M}; the exit code is unknown"
    )


def ended(state: RunState) -> float:
    """The end of a run in unix seconds; for a lost one, its last sign of life."""
    time_ = state.exit.t if state.exit else None
    return max(state.updated or 0.0, state.heartbeat or 0.0) if time_ is None else time_
