"""What an open screen says aloud: flags that rise and runs that end, each once."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from launcher.errors import UserError
from launcher.health.alerting import AlertSettings
from launcher.record.levels import Level
from launcher.run.reading.missed import rose
from launcher.run.reading.reader import RunReader
from launcher.text import clean
from tui.words.run import LEVELS, STATES, is_live, notice

Severity = Literal["information", "warning", "error"]
_ENDS: dict[str, Severity] = {"failed": "error", "lost": "error"}
_MOST = 3  # flags told one by one


@dataclass(frozen=True)
class Notice:
    """One thing to say; `loud` ones also ring and notify the desktop."""

    text: str
    severity: Severity
    loud: bool


class Notices:
    """Hands out what became worth saying since the last time. What was before its making is not."""

    def __init__(self, reader: RunReader) -> None:
        self._reader = reader
        self._told = reader.event_count
        self._live = is_live(reader.state)
        self.ways = notify_ways(reader.info)

    def fresh(self) -> list[Notice]:
        """New flags that reached WARN or CRITICAL, and the end of the run."""
        reader = self._reader
        muted = {check.get("rule") for check in reader.state.get("checks") or [] if check.get("muted")}
        fresh = reader.events_since(self._told)
        rises = [event for event in fresh if rose(event) and event["rule"] not in muted]
        self._told = reader.event_count
        rises.sort(key=lambda event: event["to"] != str(Level.CRITICAL))
        found = [_flag(event) for event in rises[:_MOST]]
        if len(rises) > _MOST:
            found.append(Notice(f"and {len(rises) - _MOST} more flags: v lists them", "warning", False))
        was_live, self._live = self._live, is_live(reader.state)
        if was_live and not self._live:
            found.append(_end(reader.name, reader.state))
        return found


def notify_ways(info: Mapping[str, Any]) -> frozenset[str]:
    """`health.notify` of a run's preset; all ways for a run that has none."""
    try:
        return AlertSettings.read((info.get("preset") or {}).get("health") or {}).notify
    except UserError:  # a run of a version that allowed other settings
        return AlertSettings().notify


def _flag(event: Mapping[str, Any]) -> Notice:
    level = str(event["to"])
    critical = level == str(Level.CRITICAL)
    text = f"{LEVELS[level][0]} {level} {event['rule']} at step {event.get('step')}: {event.get('message')}"
    return Notice(clean(text), "error" if critical else "warning", critical)


def _end(name: str, state: Mapping[str, Any]) -> Notice:
    word = str(state.get("state"))
    told = notice(state)
    sign = STATES.get(word, ("", ""))[0]
    text = f"{sign} {name} {told[1] if told else word}"
    asked = (state.get("exit") or {}).get("requested_by") == "screen"
    return Notice(clean(text), _ENDS.get(word, "information"), not asked)
