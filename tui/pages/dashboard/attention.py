"""Announces news on an open dashboard: messages, bell, notifications, terminal title; records the last look."""

import contextlib
import functools
import time
from dataclasses import dataclass
from typing import Any, Literal

from textual.app import App

from launcher.core.errors import UserError
from launcher.core.format import counted
from launcher.core.text import clean
from launcher.record.events import LevelChange
from launcher.record.info import RunInfo
from launcher.record.levels import Level
from launcher.record.note import last_look, looked
from launcher.record.state import RunState
from launcher.runs.watch.history import Missed, missed
from launcher.runs.watch.reader import RunReader
from tui.kit.run_words import STATES, level_sign, notice, state_words, verdict_words
from tui.kit.terminal import notification, send

EVERY = 60.0  # seconds between two records of a look
STAYS = 8.0  # seconds that a message stays; a loud one twice as long
Severity = Literal["information", "warning", "error"]
_ENDS: dict[str, Severity] = {"failed": "error", "lost": "error", "ended": "warning"}
_MOST = 3  # flags that get a notice each


@dataclass(frozen=True)
class Notice:
    """One message; `loud` ones also ring the bell and notify the desktop."""

    text: str
    severity: Severity
    loud: bool


class Notices:
    """New flags and the end of a run, each once, since this object was made."""

    def __init__(self, reader: RunReader) -> None:
        self._reader = reader
        self._events = reader.event_count
        self._live = reader.state.live

    @functools.cached_property
    def ways(self) -> frozenset[str]:
        return notify_ways(self._reader.info)

    def fresh(self) -> list[Notice]:
        """New flags that reached WARN or CRITICAL, and the end of the run."""
        reader = self._reader
        fresh = (event.what for event in reader.events_since(self._events))
        rises = [each for each in fresh if isinstance(each, LevelChange) and each.alarming]
        rises = [each for each in rises if each.rule not in reader.state.muted]
        self._events = reader.event_count
        rises.sort(key=lambda change: -change.after)
        found = [_flag(change, reader.state) for change in rises[:_MOST]]
        if len(rises) > _MOST:
            found.append(
                Notice(f"and {counted(len(rises) - _MOST, 'more flag')}; press v to list them", "warning", False)
            )
        was_live, self._live = self._live, reader.state.live
        if was_live and not self._live:
            found.append(_end(reader.name, reader.state))
        return found


def notify_ways(info: RunInfo) -> frozenset[str]:
    """`health.notify` of a run's preset; all ways if it has none."""
    from launcher.preset.alerting import AlertSettings

    try:
        return AlertSettings.read(info.health).notify
    except UserError:  # a run of a version that allowed other settings
        return AlertSettings.read({}).notify


def _flag(change: LevelChange, state: RunState) -> Notice:
    critical = change.after == Level.CRITICAL
    sign, _ = level_sign(change.after)
    text = f"{sign} {change.after} {change.rule} at {state.numbering.at(change.step)}: {change.message}"
    return Notice(clean(text), "error" if critical else "warning", critical)


def _end(name: str, state: RunState) -> Notice:
    ending = notice(state)
    sign = STATES.get(state.state, ("", ""))[0]
    text = f"{sign} {name} {ending[1] if ending else state.state}"
    asked = state.exit is not None and state.exit.requested_by == "screen"
    return Notice(clean(text), _ENDS.get(state.state, "information"), not asked)


class Attention:
    """Announces the news of one run; `missed`: the events since the user's last look."""

    def __init__(self, app: App[Any], reader: RunReader) -> None:
        self._app, self._reader = app, reader
        self.missed: Missed | None = missed(reader.events, reader.state, last_look(reader.id))
        self._notices = Notices(reader)
        self._read = time.time()
        self._noted = 0.0

    def update(self) -> None:
        """Announces news after every poll, and occasionally records that the run is being watched."""
        self._read = time.time()
        self._app.title = title(self._reader.name, self._reader.state)
        for each in self._notices.fresh():
            if "toast" in self._notices.ways:
                stays = STAYS * (2 if each.loud else 1)
                self._app.notify(each.text, severity=each.severity, timeout=stays, markup=False)
            if each.loud and "bell" in self._notices.ways:
                self._app.bell()
            if each.loud and "osc9" in self._notices.ways:
                send(self._app, notification(f"ppo-tui: {each.text}"))
        if self._read - self._noted >= EVERY:
            self.note()

    def note(self) -> None:
        """Records the last look at the run. Ignores a full disk, so that the run stays on the screen."""
        self._noted = self._read
        with contextlib.suppress(OSError):
            looked(self._reader.id, self._read)


def title(name: str, state: RunState) -> str:
    """`▲ WARN KL-4 · running · toy-cpu`: changes only with the verdict and the state."""
    verdict = "".join(text for text, _ in verdict_words(state)[:2])
    return f"{verdict} · {state_words(state)[0][0].partition(' ')[2]} · {name}"
