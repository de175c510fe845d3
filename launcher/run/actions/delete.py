"""Removing a run with everything it wrote."""

import contextlib
import os
import shutil

from launcher.errors import UserError
from launcher.record.control import alone
from launcher.record.layout import RunDir
from launcher.run.supervisor.spawn import ended

_DOOMED = ".deleted-"


def check(run: RunDir) -> None:
    """Raises UserError while anything of the run still goes."""
    state = ended(run)
    if state.going:
        raise UserError(f"run {run.id} is still running (state: {state.state}); stop it first")


def delete(run: RunDir) -> None:
    """Removes an ended run; raises UserError for one that goes.

    It leaves the list at once: checkpoints of hundreds of gigabytes take their time. What a delete that was
    killed left behind goes with the next one.
    """
    with alone(run):
        check(run)
        try:
            run.path.rename(run.path.with_name(_DOOMED + run.id))
        except OSError as error:
            raise UserError(f"cannot delete run {run.id}: {error.strerror}") from None
    for doomed in run.path.parent.glob(f"{_DOOMED}*"):
        shutil.rmtree(doomed, ignore_errors=True)


def size(run: RunDir) -> int:
    """Bytes that deleting a run frees."""
    total = 0
    for folder, _, files in os.walk(run.path):
        for name in files:
            with contextlib.suppress(OSError):
                total += os.lstat(f"{folder}/{name}").st_size
    return total
