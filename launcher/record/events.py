"""events.jsonl: what happened to a run, one object a line."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from launcher.files import Appender
from launcher.metrics.records import parse_object


class EventLog:
    """Appends events. Kinds: state, phase, health, alert, action, exit, note.

    A `patient` one waits where the disk is full, as `launcher.files.Appender` does.
    """

    def __init__(self, path: Path, *, patient: bool = False) -> None:
        self._file = Appender(path, patient=patient)
        self.flush = self._file.flush

    def add(self, kind: str, t: float | None = None, **fields: Any) -> None:
        """Writes one event that happened at `t` (unix seconds; now by default)."""
        event = {"schema": 1, "t": round(time.time() if t is None else t, 3), "kind": kind, **fields}
        self._file.add([orjson.dumps(event, option=orjson.OPT_APPEND_NEWLINE)])

    def change(self, before: str, after: str) -> None:
        """Writes a change of state."""
        self.add("state", None, **{"from": before, "to": after})


def read_events(path: Path) -> Iterator[dict[str, Any]]:
    """All events so far, oldest first; the half line of a writer that was killed is left out."""
    if path.exists():
        for line in path.read_bytes().splitlines():
            if (event := parse_object(line)) is not None:
                yield event
