"""Events as entries of a list, newest first."""

from collections.abc import Sequence
from datetime import datetime

from launcher.console.phases import PHASES
from launcher.core.format import counted
from launcher.record.events import (
    Action,
    Alert,
    DriverExit,
    Event,
    LevelChange,
    Note,
    PhaseChange,
    Removal,
    StateChange,
    What,
)
from launcher.record.levels import Level
from tui.kit.drawing import glyphs
from tui.kit.drawing.rows import Item, Row, labelled, put
from tui.kit.run_words import STATES, by_whom, level_sign

FILTERS: dict[str, frozenset[str]] = {  # filter -> kinds of events
    "all": frozenset({"state", "phase", "health", "alert", "action", "removal", "exit", "note"}),
    "flags": frozenset({"health"}),
    "run": frozenset({"state", "phase", "removal", "exit"}),
    "actions": frozenset({"action", "alert", "note"}),
}
MOST = 500  # events in the list; older ones stay in their file
_SIGN, _TEXT = 18, 31  # columns
HEADING: Row = [(f"{' time':12}{'step':{_SIGN - 12}}{'event':{_TEXT - _SIGN}}what happened", "dim")]


def event_items(events: Sequence[Event], only: str, columns: int) -> list[Item]:
    """The events, newest first, with a heading per day. Each is named by its position."""
    kinds = FILTERS[only]
    found = [(index, event) for index, event in enumerate(events) if event.what.kind in kinds]
    items: list[Item] = []
    day, above = "", ""
    for index, event in reversed(found[-MOST:]):
        when = event_time(event)
        if when is not None and (today := f"{when:%A} {when.day} {when:%B %Y}") != day:
            day = today
            items.append(Item(None, [[(f" {day}", "dim")]]))
        rows = event_rows(event, columns)
        (clock, role), *rest = rows[0]
        if clock == above:  # among events of one second, the newest shows the time
            rows[0] = [(" " * len(clock), role), *rest]
        above = clock
        items.append(Item(str(index), rows))
    if len(found) > MOST:
        items.append(Item(None, [[(f" {counted(len(found) - MOST, 'older event')} in events.jsonl", "dim")]]))
    return items


def event_rows(event: Event, columns: int) -> list[Row]:
    """` 14:03:22    57  ▲ WARN      KL-4 KL rose by 0.12 ...`, as many rows as the text takes."""
    when, step = event_time(event), getattr(event.what, "step", None)
    sign, word, role, text = event_words(event.what)
    first: Row = [(f" {when:%H:%M:%S}" if when else " --:--:--", "dim")]
    first.append((f"{'' if step is None else step:>7}", "text"))
    first = put(first, _SIGN, [(f"{sign} {word}", role)])
    return labelled(first, text, "dim" if role in ("dim", "ok") else "text", _TEXT, columns, most=4)


def event_words(what: What) -> tuple[str, str, str, str]:
    """Sign, word, role and text of an event."""
    match what:
        case LevelChange():
            sign, role = level_sign(what.after)
            before = f" (was {what.before})" if what.before > Level.OK else ""
            return sign, str(what.after), role, f"{what.rule}  {what.message}{before}"
        case StateChange():
            sign, role = STATES.get(what.after, (glyphs.NONE, "dim"))
            return sign, what.after, role, f"was {what.before}"
        case PhaseChange():
            phase = PHASES.get(what.phase)
            return glyphs.NONE, "phase", "dim", phase.label if phase else what.phase
        case Removal():
            gone = ", ".join(map(str, what.checkpoints))
            return glyphs.NONE, "removal", "dim", f"{counted(len(what.checkpoints), 'checkpoint')} removed: step {gone}"
        case DriverExit():
            return _exit(what)
        case Action():
            parts = (what.rule or "", by_whom(what.by), " ".join(what.settings))
            return glyphs.DASH, what.verb, "notice", " ".join(part for part in parts if part)
        case Alert() | Note():
            return glyphs.WARN, what.kind, "warn", what.text


def _exit(what: DriverExit) -> tuple[str, str, str, str]:
    code, by = what.code, what.requested_by
    text = "the driver ended without an exit code" if code is None else f"the driver exited with code {code}"
    text += f" ({what.signal})" if what.signal else ""
    text += f", requested {by_whom(by)}" if by else ""
    role = "ok" if code == 0 else "dim" if by else "critical"
    return glyphs.FINISHED if code == 0 else glyphs.STOPPED if by else glyphs.FAILED, "exit", role, text


def event_time(event: Event) -> datetime | None:
    """Local time; None for a time outside of the calendar."""
    try:
        return datetime.fromtimestamp(event.t)
    except (OverflowError, OSError, ValueError):
        return None
