"""`python -m launcher.runs.supervise RUN_DIR` supervises the newest attempt of a run directory.

With `--adopt` it takes over an attempt whose supervisor was killed. Its working directory is the run's folder, `.`, so
that a moved folder keeps its supervisor.
"""

import contextlib
import os
import signal
import sys
import time
import traceback
from pathlib import Path

from launcher.core import clock
from launcher.record import control
from launcher.record.layout import RunDir
from launcher.record.state import current, stored
from launcher.runs.supervise.spawn import IN_TIME, PATIENCE, orphaned, wake_queue
from launcher.runs.supervise.supervisor import Supervisor

_SOON = 1.0  # seconds in which a reader releases the lock, which it has only tried


def main() -> None:
    """Supervises the newest attempt of the run directory named on the command line."""
    folder, adopting = Path(sys.argv[1]).absolute(), "--adopt" in sys.argv
    os.chdir(folder)
    run = RunDir(Path(), folder.name)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    alone = control.supervise_alone(run, _SOON if adopting else PATIENCE / 2)
    before = stored(run)
    # without locks nobody knows whether there is another supervisor: a run is started, but none is taken over
    wanted = (
        alone and orphaned(run, current(run, supervising=True)) if adopting else before and before.state == "queued"
    )
    # a run that nobody has supervised for so long has lost its place to the next one of the queue
    late = not adopting and before and abs(time.time() - (before.updated or 0.0)) > IN_TIME
    if alone is False or before is None or not wanted or late:
        return
    if before.beat is not None and before.heartbeat is not None and before.supervisor and before.supervisor.this_boot:
        clock.follow(before.heartbeat, before.beat)
    try:
        supervisor = Supervisor(run, before if adopting else None)
        # only noted: a handler runs in the middle of anything, such as writing state.json
        signal.signal(signal.SIGTERM, lambda *_: setattr(supervisor, "terminated", True))
        supervisor.supervise()
        if not supervisor.retried:  # queued runs would take its GPUs
            with contextlib.suppress(Exception):  # a full disk, a damaged queue: the next command tries again
                wake_queue()
    except Exception:
        # stderr is supervisor.log; a reader derives `lost` and names that file
        traceback.print_exc()
        raise SystemExit(1) from None


main()
