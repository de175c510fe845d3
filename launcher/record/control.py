"""Requests to a run's supervisor: one small file each, renamed into place, polled twice a second."""

import time
from dataclasses import dataclass
from pathlib import Path

from launcher.files import read_json, write_json
from launcher.record.layout import RunDir

VERBS = frozenset({"stop", "mute", "unmute"})


@dataclass(frozen=True)
class Request:
    """What somebody asked for: a verb, and who asked (shown in events and in exit.json)."""

    verb: str
    by: str
    rule: str | None = None


def request(run: RunDir | Path, verb: str, *, by: str = "user", rule: str | None = None) -> None:
    """Asks the supervisor of `run` for something."""
    folder = (run if isinstance(run, RunDir) else RunDir(run)).control
    assert verb in VERBS, verb
    write_json(folder / f"{time.time_ns()}-{verb}.json", {"schema": 1, "verb": verb, "by": by, "rule": rule})


def take(run: RunDir) -> list[Request]:
    """Requests that came since the last time, oldest first; each is removed as it is taken."""
    taken = []
    for path in sorted(run.control.glob("[0-9]*.json")):
        found = read_json(path)
        path.unlink(missing_ok=True)
        if found.get("verb") in VERBS:
            rule = found.get("rule")
            taken.append(Request(found["verb"], str(found.get("by", "user")), rule if isinstance(rule, str) else None))
    return taken
