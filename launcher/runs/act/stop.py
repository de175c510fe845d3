"""Stops a run."""

import contextlib
import os
import signal
import time
from collections.abc import Callable

from launcher.core.errors import UserError
from launcher.machine.ray_jobs import Cluster
from launcher.record import control
from launcher.record.attempt import Exit
from launcher.record.events import Action, EventLog, Note
from launcher.record.layout import AttemptDir, RunDir
from launcher.record.process import run_members
from launcher.record.state import RunState, current, silence, supervised
from launcher.runs.supervise import driver
from launcher.runs.supervise.adoption import driver_of
from launcher.runs.supervise.spawn import ended, kept

HEARD = 10.0  # seconds in which a supervisor takes a request, for which it looks twice a second, or writes its state
STOP_PATIENCE = 30.0  # seconds that `stop --wait` waits
_THERE = "use 'ppo-tui stop {}' in the container or on the machine where it was started"
_GONE = 3.0  # seconds in which a killed supervisor is gone


def stop(run: RunDir, *, by: str = "user", wait: bool = False, narrate: Callable[[str], None] = lambda _: None) -> str:
    """Requests the end of a run; returns its state then (with `wait`, after the end).

    A run without a supervisor first gets a new one. Kills a supervisor that does not answer or (with `wait`) does not
    end the run; this process then ends the driver. `narrate` receives the reason. Processes in another container or
    machine get no signal: UserError if no supervisor there takes the request.
    """
    control.refuse_later(run)
    state = current(run)
    if not state.going:
        return state.state
    if state.elsewhere is not None:
        why = f"it has no supervisor, and its driver may be running elsewhere ({state.elsewhere.words})"
        raise UserError(f"cannot stop run {run.id}: {why}", _THERE.format(run.id))
    asked = time.monotonic()
    try:
        control.request(run, "stop", by=by)
    except OSError:  # a full disk: the supervisor listens to a signal, too
        if state.supervisor is None or not state.supervisor.alive():
            raise
        os.kill(state.supervisor.pid, signal.SIGTERM)
    if state.driver_alive and state.driver is not None and state.driver.gone:
        return ended(run).state  # the next supervisor ends remaining processes
    state = kept(run)
    while state.live and not _heard(run) and time.monotonic() - asked < HEARD:
        time.sleep(0.05)
        state = kept(run)
    patience = STOP_PATIENCE if _heard(run) else HEARD
    while wait and state.live and (time.monotonic() - asked < patience or _finishes(run, state)):
        time.sleep(0.2)
        state = kept(run)
    if state.live and state.supervisor is not None and not state.supervisor.here and not _heard(run):
        why = f"its supervisor is in another container or on another machine, and has not answered for {HEARD:.0f} s"
        raise UserError(f"cannot stop run {run.id} from here: {why}", f"the request remains; {_THERE.format(run.id)}")
    other = state.supervisor is None or (state.supervisor.here and state.supervisor.pid != os.getpid())
    if other and state.going and (wait or not _heard(run)) and not _finishes(run, state):
        return _end_it_here(run, state, by, narrate)
    return state.state


def _heard(run: RunDir) -> bool:
    return not any(run.control.glob("*-stop.json"))


def _finishes(run: RunDir, state: RunState) -> bool:
    """Whether only the supervisor runs, which reads the remaining log and accepts no requests."""
    if state.driver is None or not state.driver.here or silence(state) > HEARD:
        return False
    return not any(True for _ in run_members(state.driver, run.read_id()))


def cancel_retry(run: RunDir, state: RunState) -> bool:
    """Cancels the retry of a failed run whose supervisor waits for it. Returns whether there was one."""
    if state.state != "failed" or not supervised(run, state):
        return False
    control.request(run, "stop")
    return True


def _end_it_here(run: RunDir, state: RunState, by: str, narrate: Callable[[str], None]) -> str:
    """Ends a driver whose supervisor does not; the next supervisor reads the remaining log and records the end."""
    attempt = run.last_attempt()
    what = "had no supervisor"
    if state.supervisor is not None and state.supervisor.alive():
        what = f"had a supervisor (pid {state.supervisor.pid}) that did not respond; killed it"
        deadline = time.monotonic() + _GONE
        with contextlib.suppress(OSError):
            os.kill(state.supervisor.pid, signal.SIGKILL)
        while state.supervisor.alive() and time.monotonic() < deadline:
            time.sleep(0.02)
        state = current(run)
    job = attempt.read_launch().job if attempt is not None else None
    if job is not None:
        Cluster(job.address).stop(job.id)
    driver_id = driver_of(state, run.read_id(), attempt) if attempt is not None else state.driver
    over = driver_id is not None and not any(True for _ in run_members(driver_id, run.read_id()))
    left = driver.stop(driver_id, run.read_id()) if driver_id is not None else []
    note = f"the run {what}" + ("; the driver had ended" if over else " and ended the driver")
    note += f"; could not kill: {', '.join(left)}" if left else ""
    events = EventLog(run.events)
    if control.take(run):  # nobody took the request
        events.add(Action("stop", by))
    events.add(Note(note))
    narrate(note)
    # the console tells how a driver ended that nobody stopped, and Ray how a job did
    if attempt is not None and not over and job is None and attempt.read_exit() is None:
        Exit(None, None, by, time.time()).write(attempt.exit)
    return _recorded(run, attempt)


def _recorded(run: RunDir, attempt: AttemptDir | None) -> str:
    """The state recorded by the next supervisor, or in exit.json if that takes longer."""
    state, deadline = ended(run), time.monotonic() + STOP_PATIENCE
    record = attempt.read_exit() if attempt is not None else None
    while state.live and record is None and time.monotonic() < deadline:  # for a job
        time.sleep(0.2)
        state = kept(run)
    return record.state if state.live and record is not None else state.state
