"""Handing an attempt over to a detached supervisor."""

import subprocess
import sys
import time

from launcher.errors import UserError
from launcher.preset.translate import Launch
from launcher.record.attempt import LaunchRecord
from launcher.record.layout import AttemptDir, RunDir
from launcher.record.state import RunState, StateFile, current

PATIENCE = 20.0  # seconds for the supervisor's first sign of life


def write_launch(
    run: RunDir,
    attempt: AttemptDir,
    launch: Launch,
    *,
    created: float,
    run_created: float,
    resume_step: int | None = None,
) -> None:
    """What the supervisor needs. The surroundings of the driver come from ours, so no secret is written."""
    LaunchRecord(
        argv=tuple(launch.argv),
        env=launch.env,
        unset=tuple(launch.unset),
        keys=launch.keys,
        cwd=launch.cwd or str(run.path),
        created=created,
        run_created=run_created,
        resume_step=resume_step,
    ).write(attempt.launch)
    queued = RunState("queued", attempt=attempt.number, created=run_created, started=created, verdict="WARM")
    StateFile(run).write(queued)


def spawn_supervisor(run: RunDir) -> None:
    """Starts the supervisor of the newest attempt and waits for its first sign of life."""
    with run.supervisor_log.open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "launcher.run.supervisor", str(run.path)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd=run.path,
        )
    deadline = time.monotonic() + PATIENCE
    while current(run, checks=False).supervisor is None:
        if process.poll() is not None or time.monotonic() > deadline:
            raise UserError(f"the supervisor of run {run.id} did not start; see {run.supervisor_log}")
        time.sleep(0.02)
