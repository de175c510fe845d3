"""Requests to a run's supervisor: one small file each, renamed into place, polled twice a second."""

import time
from dataclasses import dataclass

from launcher.record.json import Record
from launcher.record.layout import RunDir

VERBS = frozenset({"stop", "mute", "unmute"})


@dataclass(frozen=True, slots=True)
class Request(Record):
    """What was asked for, and by whom (shown in events and in exit.json). `rule` is the one to mute."""

    verb: str
    by: str = "user"
    rule: str | None = None


def request(run: RunDir, verb: str, *, by: str = "user", rule: str | None = None) -> None:
    """Asks the supervisor of `run` for something. Raises OSError."""
    assert verb in VERBS, verb
    Request(verb, by, rule).write(run.control / f"{time.time_ns()}-{verb}.json")


def take(run: RunDir) -> list[Request]:
    """Requests that came since the last time, oldest first; each is removed as it is taken."""
    taken = []
    for path in sorted(run.control.glob("[0-9]*.json")):
        found = Request.read(path)
        path.unlink(missing_ok=True)
        if found is not None and found.verb in VERBS:
            taken.append(found)
    return taken
