"""Removing a run with everything it wrote."""

import contextlib
import os
import shutil
from pathlib import Path

from launcher.core.errors import UserError
from launcher.record.control import alone
from launcher.record.layout import RunDir
from launcher.record.ray_session import left_by
from launcher.runs.supervise.spawn import ended

_DOOMED = ".deleted-"


def check(run: RunDir) -> None:
    """Raises UserError for a run that has not ended."""
    state = ended(run)
    if state.going:
        raise UserError(
            f"run {run.id} is still running (state: {state.state})", f"stop it with 'ppo-tui stop {run.id}'"
        )


def delete(run: RunDir) -> None:
    """Removes an ended run and what its Ray left. Raises UserError for a run that has not ended.

    The run leaves the list at once; removing hundreds of gigabytes of checkpoints takes longer. What is left of a run
    when a delete is killed, the next delete removes.
    """
    with alone(run):
        check(run)
        for session in left_by(run):
            shutil.rmtree(session.path, ignore_errors=True)
        try:
            run.path.rename(run.path.with_name(_DOOMED + run.id))
        except OSError as error:
            raise UserError(f"cannot delete run {run.id}: {error.strerror}") from None
    for doomed in run.path.parent.glob(f"{_DOOMED}*"):
        shutil.rmtree(doomed, ignore_errors=True)


def size(path: Path) -> int:
    """Bytes that the files of a folder take on the disk; a console with a gap takes less than its length."""
    total = 0
    for folder, _, files in os.walk(path):
        for name in files:
            with contextlib.suppress(OSError):
                status = os.lstat(f"{folder}/{name}")
                total += min(status.st_size, status.st_blocks * 512)
    return total
