"""A real run under a real supervisor, whose driver prints a step and goes on when it is told."""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from waiting import wait_for

from launcher.preset.translate import Launch
from launcher.record.info import RunInfo
from launcher.record.layout import RunDir, create
from launcher.record.process import run_processes
from launcher.record.state import current
from launcher.runs.supervise.spawn import spawn_supervisor, write_launch

# Step 1 raises NUM-1. The others come when there is a file `go`, its end when there is `end`.
_DRIVER = """
import pathlib, subprocess, sys, time
def wait(name):
    while not pathlib.Path(sys.argv[1], name).exists():
        time.sleep(0.02)
ignores = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
if "leaves" in sys.argv:
    subprocess.Popen([sys.executable, "-c", ignores], start_new_session=True)
print("Total training steps: 5", flush=True)
for step in range(1, 6):
    loss = "nan" if step == 1 else 0.1
    print(f"step:{step} - critic/score/mean:0.{step} - actor/entropy:0.5 - actor/pg_loss:{loss}", flush=True)
    if step == 1:
        wait("go")
    if "screams" in sys.argv and step < 5:
        print(("x" * 99 + "\\n") * 20_000, flush=True)
wait("end")
"""


def stepping(folder: Path, *how: str) -> Launch:
    """What starts the driver, which looks for `go` and `end` in a folder.

    `leaves`: a grandchild that ignores SIGTERM in a session of its own; `screams`: 2 MB of lines between the steps.
    """
    return Launch(argv=[sys.executable, "-c", _DRIVER, str(folder), *how], env={}, unset=[], keys={})


@contextlib.contextmanager
def stepping_run(folder: Path, *how: str) -> Iterator[RunDir]:
    """A run that has printed its first step; what is left of it in the end is killed."""
    run, now = create("x"), time.time()
    RunInfo(run.id, "x", now).write(run.run_yaml)
    write_launch(run, run.add_attempt(), stepping(folder, *how), created=now, run_created=now)
    spawn_supervisor(run)
    try:
        wait_for(run, lambda state: state.step == 1 and state.state == "running")
        yield run
    finally:
        state = current(run)
        left = {each.pid for each in (state.supervisor, state.driver) if each is not None and each.alive()}
        for pid in left.union(run_processes(run.id)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
