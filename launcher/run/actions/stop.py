"""Ending a run."""

import contextlib
import os
import signal
import time
from collections.abc import Callable

from launcher.jobs import Cluster
from launcher.record import control
from launcher.record.attempt import Exit
from launcher.record.events import Action, EventLog, Note
from launcher.record.layout import RunDir
from launcher.record.process import run_members
from launcher.record.state import RunState, current
from launcher.run.supervisor import driver
from launcher.run.supervisor.spawn import ended, kept

HEARD = 10.0  # seconds in which a supervisor takes a request; it looks for them twice a second
STOP_PATIENCE = 30.0  # seconds that `stop --wait` waits


def stop(run: RunDir, *, by: str = "user", wait: bool = False, narrate: Callable[[str], None] = lambda _: None) -> str:
    """Asks for the end of a run; returns the state it is in then (`wait`: in the end).

    A run that lost its supervisor gets a new one first. Where a supervisor does not answer, or (`wait`) does not
    end the run, it is killed, and the driver is ended here and now; `narrate` is told.
    """
    control.refuse_later(run)
    state = current(run)
    if not state.going:
        return state.state
    asked = time.monotonic()
    _ask_to_end(run, state, by)
    if state.driver_alive and state.driver is not None and not state.driver.alive():
        return ended(run).state  # the next supervisor ends what the driver left
    state = kept(run)
    while time.monotonic() - asked < HEARD and any(run.control.glob("*-stop.json")) and state.live:
        time.sleep(0.05)
        state = kept(run)
    heard = not any(run.control.glob("*-stop.json"))
    while heard and wait and state.live and time.monotonic() - asked < STOP_PATIENCE:
        time.sleep(0.2)
        state = kept(run)
    over = state.driver is not None and not any(True for _ in run_members(state.driver, run.read_id()))
    if state.going and not over and (wait or not heard):
        return _end_it_here(run, state, by, narrate)
    return state.state


def cancel_retry(run: RunDir, state: RunState) -> bool:
    """Asks the supervisor of a failed run, which lives only while it waits, not to continue it; whether it does."""
    if state.state != "failed" or state.supervisor is None or not state.supervisor.alive():
        return False
    control.request(run, "stop")
    return True


def _ask_to_end(run: RunDir, state: RunState, by: str) -> None:
    try:
        control.request(run, "stop", by=by)
    except OSError:  # a full disk: the supervisor listens to a signal, too
        if state.supervisor is None or not state.supervisor.alive():
            raise
        os.kill(state.supervisor.pid, signal.SIGTERM)


def _end_it_here(run: RunDir, state: RunState, by: str, narrate: Callable[[str], None]) -> str:
    """Ends a driver whose supervisor does not; the next supervisor reads the rest and records the end."""
    attempt = run.last_attempt()
    supervisor = state.supervisor
    what = "had no supervisor"
    if supervisor is not None and supervisor.alive():
        what = f"had a supervisor (pid {supervisor.pid}) that did not respond; killed it"
        with contextlib.suppress(OSError):
            os.kill(supervisor.pid, signal.SIGKILL)
    job = attempt.read_launch().job if attempt is not None else None
    if job is not None:
        Cluster(job.address).stop(job.id)
    left = driver.stop(state.driver, run.read_id()) if state.driver is not None else []
    said = f"the run {what} and ended the driver" + (f"; could not kill: {', '.join(left)}" if left else "")
    events = EventLog(run.events)
    if control.take(run):  # nobody has
        events.add(Action("stop", by))
    events.add(Note(said))
    narrate(said)
    if attempt is not None and job is None and attempt.read_exit() is None:  # of a job Ray tells it
        Exit(None, None, by, time.time()).write(attempt.exit)
    return kept(run).state if supervisor is None or not supervisor.alive() else current(run).state
