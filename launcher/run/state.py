"""States of a run: how state.json is written, and what a reader derives from it.

queued -> preflight -> starting -> running -> stopping -> stopped | finished | failed
lost (derived, never written): the supervisor is gone without an exit record
imported: a log from elsewhere; its `outcome` says how it ended
"""

import time
from typing import Any

from launcher.files import write_json
from launcher.run.directory import SCHEMA, RunDir
from launcher.run.process import ProcessId

ENDED = frozenset({"stopped", "finished", "failed", "lost", "imported"})
ALIVE = frozenset({"queued", "preflight", "starting", "running", "stopping"})
HEARTBEAT = 5.0  # seconds between two writes when nothing changed
_START_PATIENCE = 30.0  # seconds a queued run may lack a supervisor


class StateFile:
    """Writes state.json when something changed, and now and then as a sign of life."""

    def __init__(self, run: RunDir) -> None:
        self._path = run.state
        self._told: dict[str, Any] = {}
        self._updated = self._beat = 0.0

    def write(self, told: dict[str, Any]) -> None:
        """Replaces state.json with `told` (without schema, updated and heartbeat, which are added)."""
        now = time.time()
        if told == self._told and now - self._beat < HEARTBEAT:
            return
        if told != self._told:
            self._told, self._updated = told, now
        self._beat = now
        write_json(self._path, {"schema": SCHEMA, **told, "updated": self._updated, "heartbeat": now})


def current(run: RunDir) -> dict[str, Any]:
    """state.json as a reader must understand it: `lost` derived, with `driver_alive` beside it."""
    return derive(run.read_state())


def derive(state: dict[str, Any]) -> dict[str, Any]:
    """`state` with `lost` in place of a state that nobody keeps up any more.

    A supervisor that lives but has not written for a minute or more (stopped, or its disk hangs) is told by
    `silent_minutes`: the figures are old then.
    """
    if state.get("state") not in ALIVE:
        return state or {"state": "lost", "driver_alive": False}
    supervisor = ProcessId.from_json(state.get("supervisor"))
    if supervisor is None:
        kept = time.time() - float(state.get("updated") or 0) < _START_PATIENCE
    else:
        kept = supervisor.alive()
    if kept:
        silent = (time.time() - float(state.get("heartbeat") or time.time())) // 60
        return {**state, "silent_minutes": int(silent)} if silent >= 1 else state
    driver = ProcessId.from_json(state.get("driver"))
    return {**state, "state": "lost", "driver_alive": bool(driver and driver.alive())}
