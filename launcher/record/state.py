"""States of a run: how state.json is written, and what a reader derives from it.

queued -> preflight -> starting -> running -> stopping -> stopped | finished | failed
lost (derived, never written): the supervisor is gone without an exit record
imported: a log from elsewhere; its `outcome` says how it ended
"""

import math
import time
from typing import Any

from launcher.files import read_json, write_json
from launcher.health.verdict import TOO_SHORT
from launcher.process import ProcessId, session_members
from launcher.record.layout import SCHEMA, RunDir

ENDED = frozenset({"stopped", "finished", "failed", "lost", "imported"})
ALIVE = frozenset({"queued", "preflight", "starting", "running", "stopping"})
HEARTBEAT = 5.0  # seconds between two writes when nothing changed
_START_PATIENCE = 30.0  # seconds a queued run may lack a supervisor
_HEARD = 60.0  # seconds since the last heartbeat of a supervisor elsewhere, after which it is gone
_REMOVED = "its folder was removed, or state.json in it is broken"


class StateFile:
    """Writes state.json when something changed, and now and then as a sign of life."""

    def __init__(self, run: RunDir) -> None:
        self._path = run.state
        self._told: dict[str, Any] = {}
        self._updated, self._beat = 0.0, -math.inf

    def write(self, told: dict[str, Any]) -> None:
        """Replaces state.json with `told` (without schema, updated and heartbeat, which are added).

        Raises OSError; then the next call tries again.
        """
        now, beat = time.time(), time.monotonic()  # the clock may be set
        if told == self._told and beat - self._beat < HEARTBEAT:
            return
        updated = self._updated if told == self._told else now
        write_json(self._path, {"schema": SCHEMA, **told, "updated": updated, "heartbeat": now})
        self._told, self._updated, self._beat = told, updated, beat


def ending(record: dict[str, Any]) -> str:
    """The state in which an exit record leaves a run."""
    if record.get("code") == 0:
        return "finished"
    return "stopped" if record.get("requested_by") else "failed"


def shown_verdict(state: str, verdict: str | None) -> str:
    """A run's verdict as people see it: one that has ended warms up no more. JSON keeps the level."""
    return TOO_SHORT if verdict == "WARM" and state in ENDED else verdict or "–"


def current(run: RunDir) -> dict[str, Any]:
    """state.json as a reader must understand it.

    In place of a state that nobody keeps up any more stands `lost`, with `driver_alive` beside it, or the end
    that exit.json tells: its supervisor was killed before it had read the whole log for the cause.
    """
    state = _kept_up(run.read_state())
    if state["state"] == "lost" and isinstance(state.get("attempt"), int):
        record = read_json(run.attempt(state["attempt"]).exit)
        if record:
            return {**state, "state": ending(record), "exit": record}
    return state


def _kept_up(state: dict[str, Any]) -> dict[str, Any]:
    """`state`, or `lost` when its supervisor is gone.

    A supervisor that lives but has not written for a minute or more (stopped, or its disk hangs) is told by
    `silent_minutes`: the figures are old then. Of one on another machine that shares this folder, or from
    before the last start of this one, only the heartbeat tells whether it lives.
    """
    if state.get("state") not in ALIVE:
        return state or {"state": "lost", "driver_alive": False, "error": _REMOVED}
    supervisor, now = ProcessId.from_json(state.get("supervisor")), time.time()
    silent = now - float(state.get("heartbeat") or now)
    if supervisor is None:
        kept = now - float(state.get("updated") or 0) < _START_PATIENCE
    else:
        kept = supervisor.alive() if supervisor.here else abs(silent) < _HEARD
    if kept:
        return {**state, "silent_minutes": int(silent // 60)} if silent >= 60 else state
    driver = ProcessId.from_json(state.get("driver"))
    alive = driver is not None and (driver.alive() or bool(session_members(driver)))
    return {**state, "state": "lost", "driver_alive": alive}
