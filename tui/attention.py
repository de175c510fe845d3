"""What an open dashboard does beside its picture: the terminal's title, toasts, bell, and the last look."""

import contextlib
import time
from collections.abc import Mapping
from typing import Any

from textual.app import App

from launcher.run.reading.missed import Away, away, last_look, looked
from launcher.run.reading.reader import RunReader
from tui.notices import Notices
from tui.terminal import notification, send
from tui.words.run import state_words, verdict_words

EVERY = 60.0  # seconds between two notes that somebody looks
TOAST = 8.0  # seconds that a toast stays; a loud one twice as long


class Attention:
    """Made when a run has been read for the first time; `missed` is what happened since the last look."""

    def __init__(self, app: App[Any], reader: RunReader) -> None:
        self._app, self._reader = app, reader
        self.missed: Away | None = away(reader.events, reader.state, last_look(reader.id))
        self._notices = Notices(reader)
        self._read = time.time()
        self._noted = 0.0

    def heed(self) -> None:
        """After every look at the files: tells what is new, and notes now and then that somebody looks."""
        self._read = time.time()
        self._app.title = title(self._reader.name, self._reader.state)
        for notice in self._notices.fresh():
            if "toast" in self._notices.ways:
                stays = TOAST * (2 if notice.loud else 1)
                self._app.notify(notice.text, severity=notice.severity, timeout=stays, markup=False)
            if notice.loud and "bell" in self._notices.ways:
                self._app.bell()
            if notice.loud and "osc9" in self._notices.ways:
                send(self._app, notification(f"ppo-tui: {notice.text}"))
        if self._read - self._noted >= EVERY:
            self.note()

    def note(self) -> None:
        """Writes down when the run was looked at last. A full disk is no reason to stop showing it."""
        self._noted = self._read
        with contextlib.suppress(OSError):
            looked(self._reader.id, self._read)


def title(name: str, state: Mapping[str, Any]) -> str:
    """`▲ WARNING KL-4 · running · toy-cpu`: changes with the verdict and the state alone."""
    verdict = "".join(text for text, _ in verdict_words(state)[:2])
    return f"{verdict} · {state_words(state)[0][0].partition(' ')[2]} · {name}"
