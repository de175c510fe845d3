"""Events of a run as rows: when, at which step, a sign with its word, and what happened."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from textwrap import wrap
from typing import Any

from launcher.console.phases import PHASES
from launcher.text import clean
from tui.drawing import glyphs
from tui.drawing.rows import Item, Row, put
from tui.words.run import LEVELS, STATES, by_whom

FILTERS: dict[str, frozenset[str]] = {  # what the list can be narrowed to -> kinds of events
    "all": frozenset({"state", "phase", "health", "alert", "action", "exit", "note"}),
    "flags": frozenset({"health"}),
    "run": frozenset({"state", "phase", "exit"}),
    "actions": frozenset({"action", "alert", "note"}),
}
MOST = 500  # events in the list; older ones stay in their file
_SIGN, _TEXT = 18, 31  # columns


def event_items(events: Sequence[Mapping[str, Any]], only: str, columns: int) -> list[Item]:
    """The newest events first, a heading for each day. Those about a check carry its position as name."""
    kinds = FILTERS[only]
    found = [(index, event) for index, event in enumerate(events) if event.get("kind") in kinds]
    items: list[Item] = []
    day = ""
    for index, event in reversed(found[-MOST:]):
        when = _time(event)
        if when is not None and (today := f"{when:%A} {when.day} {when:%B %Y}") != day:
            day = today
            items.append(Item(None, [[(f" {day}", "dim")]]))
        items.append(Item(str(index), event_rows(event, columns)))
    if len(found) > MOST:
        items.append(Item(None, [[(f" {len(found) - MOST} older ones are in events.jsonl", "dim")]]))
    return items


def event_rows(event: Mapping[str, Any], columns: int) -> list[Row]:
    """` 14:03:22    57  ▲ WARN      KL-4 KL rose by 0.12 ...`, as many rows as the text takes."""
    when, step = _time(event), event.get("step")
    sign, word, role, text = _described(event)
    first: Row = [(f" {when:%H:%M:%S}" if when else " --:--:--", "dim")]
    first.append((f"{step if isinstance(step, int) else '':>7}", "text"))
    first = put(first, _SIGN, [(f"{sign} {word}", role)])
    quiet = role in ("dim", "ok")
    lines = wrap(clean(text), max(columns - _TEXT - 1, 16), max_lines=4, placeholder=" …") or [""]
    rows: list[Row] = [put(first, _TEXT, [(lines[0], "dim" if quiet else "text")])]
    return rows + [[(" " * _TEXT + line, "dim" if quiet else "text")] for line in lines[1:]]


def _described(event: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """Sign, word, role and text of an event."""
    kind = event.get("kind")
    if kind == "health":
        level = str(event.get("to"))
        sign, _, role = LEVELS.get(level, LEVELS["N-A"])
        before = f" (was {event.get('from')})" if event.get("from") not in ("OK", "WARM", "N-A") else ""
        return sign, level, role, f"{event.get('rule')}  {event.get('message') or ''}{before}"
    if kind == "state":
        state = str(event.get("to"))
        sign, role = STATES.get(state, (glyphs.NONE, "dim"))
        return sign, state, role, f"was {event.get('from')}"
    if kind == "phase":
        phase = PHASES.get(str(event.get("phase")))
        return (glyphs.NONE, str(event.get("phase")).removesuffix("-first"), "dim", phase.label if phase else "")
    if kind == "exit":
        return _exit(event)
    if kind == "action":
        return glyphs.DASH, str(event.get("verb")), "notice", _action(event)
    return glyphs.WARN, str(kind), "warn", str(event.get("text") or "")


def _exit(event: Mapping[str, Any]) -> tuple[str, str, str, str]:
    code, by = event.get("code"), event.get("requested_by")
    text = "the driver was ended" if code is None else f"the driver left with code {code}"
    text += f" ({event['signal']})" if event.get("signal") else ""
    text += f", asked {by_whom(by)}" if by else ""
    role = "ok" if code == 0 else "dim" if by else "critical"
    return glyphs.FINISHED if code == 0 else glyphs.STOPPED if by else glyphs.FAILED, "exit", role, text


def _action(event: Mapping[str, Any]) -> str:
    by = by_whom(event.get("by"))
    settings = " ".join(map(str, event.get("settings") or []))
    return " ".join(part for part in (str(event.get("rule") or ""), by, settings) if part)


def _time(event: Mapping[str, Any]) -> datetime | None:
    """Local time."""
    t = event.get("t")
    try:
        return datetime.fromtimestamp(t) if isinstance(t, (int, float)) else None
    except (OverflowError, OSError, ValueError):
        return None
