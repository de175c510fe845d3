"""Letting the queue go on. No daemon does: whoever looks, and each supervisor at its end, starts a short process."""

import os
import subprocess
import time

from launcher.core import paths
from launcher.record import queue
from launcher.record.process import ATTEMPT, RUN

_AGAIN = 20.0  # seconds between two looks of a screen
_woken = 0.0


def wake(*, again: bool = False) -> None:
    """Starts `launcher.runs.act.queue`, unless nothing waits or one is there.

    `again`: of one that looks all the time, which is worth a process now and then. Raises OSError.
    """
    global _woken
    if again and time.monotonic() - _woken < _AGAIN:
        return
    if queue.paused() or not any(each.waits for each in queue.entries()):
        return
    _woken = time.monotonic()
    with queue.alone() as nobody:
        if not nobody:
            return
    env = {name: value for name, value in os.environ.items() if name not in (RUN, ATTEMPT)}
    with (paths.queue_dir() / "queue.log").open("ab") as log:
        subprocess.Popen(
            paths.own_command("launcher.runs.act.queue"),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd=paths.queue_dir(),
            env=env,
        )
