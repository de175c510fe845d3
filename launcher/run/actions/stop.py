"""Ending a run."""

import dataclasses
import os
import signal
import time

from launcher.record import control
from launcher.record.attempt import Exit
from launcher.record.events import Action, DriverExit, EventLog, Note
from launcher.record.layout import RunDir
from launcher.record.state import RunState, StateFile, current
from launcher.run.actions.catch_up import catch_up
from launcher.run.supervisor import driver

STOP_PATIENCE = 30.0  # seconds that `stop --wait` waits


def stop(run: RunDir, *, by: str = "user", wait: bool = False) -> str:
    """Asks for the end of a run; returns the state it is in then (`wait`: in the end).

    Without a supervisor the driver's process session is ended here and now.
    """
    control.refuse_later(run)
    state = current(run)
    if state.driver_alive:
        return _stop_orphan(run, state, by)
    if state.live:
        _ask_to_end(run, state, by)
    deadline = time.monotonic() + STOP_PATIENCE
    while wait and state.live and time.monotonic() < deadline:
        time.sleep(0.2)
        state = current(run)
    if state.driver_alive:  # the supervisor died meanwhile
        return _stop_orphan(run, state, by)
    return state.state


def _ask_to_end(run: RunDir, state: RunState, by: str) -> None:
    try:
        control.request(run, "stop", by=by)
    except OSError:  # a full disk: the supervisor listens to a signal, too
        if state.supervisor is None or not state.supervisor.alive():
            raise
        os.kill(state.supervisor.pid, signal.SIGTERM)


def _stop_orphan(run: RunDir, state: RunState, by: str) -> str:
    """Ends a driver whose supervisor is gone, and writes what the supervisor would have written."""
    attempt = run.last_attempt()
    assert state.driver is not None and attempt is not None
    left = driver.stop(state.driver)
    step = catch_up(attempt)
    record = Exit(None, None, by, time.time())
    record.write(attempt.exit)
    events = EventLog(run.events)
    events.add(Action("stop", by))
    events.add(DriverExit.of(record))
    if left:
        events.add(Note(f"could not kill these processes of the run: {', '.join(left)}"))
    step = state.step if step is None else step
    stopped = dataclasses.replace(
        state, state="stopped", step=step, exit=record, cause="stopped", driver_alive=None, silent_minutes=None
    )
    StateFile(run).write(stopped)
    return stopped.state
