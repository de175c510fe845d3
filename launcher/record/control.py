"""Control of a run: requests to its supervisor, the supervisor's lock, and a lock for ended runs.

A request is a small file, renamed into place; the supervisor polls for it twice per second.
"""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from launcher.core.errors import UserError, of_file
from launcher.record.damage import later, schema
from launcher.record.json import SCHEMA, Record
from launcher.record.layout import RunDir
from launcher.record.process import is_locked, lock, locked

VERBS = frozenset({"stop", "mute", "unmute"})


@dataclass(frozen=True, slots=True)
class Request(Record):
    """A request and its author (shown in events and in exit.json). `rule`: the rule to mute."""

    verb: str
    by: str = "user"
    rule: str | None = None


def refuse_later(run: RunDir) -> None:
    """Raises UserError for a run of a later ppo-tui, which could not read our files."""
    if (number := schema(run)) > SCHEMA:
        raise UserError(f"cannot change run {run.id}: {later(number)}", "update ppo-tui")


def request(run: RunDir, verb: str, *, by: str = "user", rule: str | None = None) -> None:
    """Sends a request to the supervisor of `run`. Raises OSError; UserError for a run of a later ppo-tui."""
    refuse_later(run)
    assert verb in VERBS, verb
    Request(verb, by, rule).write(run.control / f"{time.time_ns()}-{verb}.json")


def take(run: RunDir) -> list[Request]:
    """New requests, oldest first; each is removed."""
    taken = []
    for path in sorted(run.control.glob("[0-9]*.json")):
        request = Request.read(path)
        path.unlink(missing_ok=True)
        if request is not None and request.verb in VERBS:
            taken.append(request)
    return taken


@contextlib.contextmanager
def alone(run: RunDir) -> Iterator[None]:
    """Locks an ended run against concurrent changes. UserError for a second process, and for a newer run."""
    refuse_later(run)
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(locked(run.path / ".lock"))
        except BlockingIOError:
            raise UserError(f"run {run.id} is being resumed or deleted by another process", "wait a moment") from None
        except OSError as error:
            raise of_file(f"cannot change run {run.id}", error) from None
        yield


def supervise_alone(run: RunDir, patience: float) -> bool | None:
    """Makes this process the only supervisor of `run` until it ends; waits `patience` seconds for another one to end.
    False if another one stays, None if the file system has no locks.
    """
    try:
        return True if lock(_supervisor_lock(run), patience) is not None else None
    except BlockingIOError:
        return False
    except OSError:
        return None


def supervised(run: RunDir) -> bool | None:
    """Whether a supervisor of `run` lives, on any machine: it holds its lock. None if the file system has no locks."""
    return is_locked(_supervisor_lock(run))


def _supervisor_lock(run: RunDir) -> Path:
    return run.path / ".supervisor"
