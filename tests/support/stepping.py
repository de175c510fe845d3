"""A real run under a real supervisor, whose driver prints a step and continues on request."""

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

from driven import driven
from waiting import wait_for

from launcher.record.layout import RunDir
from launcher.record.process import run_processes
from launcher.record.state import current

STEPS = """
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
"""A driver that raises NUM-1 in step 1, continues when its folder has a file `go`, and ends at `end`.

`leaves`: with a grandchild that ignores SIGTERM in its own session. `screams`: with 2 MB of lines between steps.
"""


@contextlib.contextmanager
def stepping_run(folder: Path, *how: str) -> Iterator[RunDir]:
    """A run after its first step; remaining processes are finally killed."""
    run = driven(STEPS, str(folder), *how)
    try:
        wait_for(run, lambda state: state.step == 1 and state.state == "running")
        yield run
    finally:
        state = current(run)
        left = {each.pid for each in (state.supervisor, state.driver) if each is not None and each.alive()}
        for pid in left.union(run_processes(run.id)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def go(folder: Path) -> None:
    """Lets the driver complete its other steps and end."""
    for name in ("go", "end"):
        (folder / name).touch()
