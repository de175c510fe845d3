"""Removing a run with everything it wrote."""

import contextlib
import os
import shutil
from pathlib import Path

from launcher.errors import UserError
from launcher.record.control import alone
from launcher.record.layout import RunDir
from launcher.record.ray_session import RaySession
from launcher.run.supervisor.spawn import ended

_DOOMED = ".deleted-"


def check(run: RunDir) -> None:
    """Raises UserError while anything of the run still goes."""
    state = ended(run)
    if state.going:
        raise UserError(f"run {run.id} is still running (state: {state.state}); stop it first")


def delete(run: RunDir) -> None:
    """Removes an ended run and what its Ray left; raises UserError for one that goes.

    It leaves the list at once: checkpoints of hundreds of gigabytes take their time. What a delete that was
    killed left behind goes with the next one.
    """
    with alone(run):
        check(run)
        for number in run.attempt_numbers():
            session = RaySession.read(run.attempt(number).ray)
            if session is not None and session.left:
                shutil.rmtree(session.path, ignore_errors=True)
        try:
            run.path.rename(run.path.with_name(_DOOMED + run.id))
        except OSError as error:
            raise UserError(f"cannot delete run {run.id}: {error.strerror}") from None
    for doomed in run.path.parent.glob(f"{_DOOMED}*"):
        shutil.rmtree(doomed, ignore_errors=True)


def size(path: Path) -> int:
    """Bytes that deleting a folder frees."""
    total = 0
    for folder, _, files in os.walk(path):
        for name in files:
            with contextlib.suppress(OSError):
                total += os.lstat(f"{folder}/{name}").st_size
    return total
