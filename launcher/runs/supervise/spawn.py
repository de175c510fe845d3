"""Starts detached processes: the supervisor of a new or orphaned attempt, the queue starter, a retry."""

import contextlib
import math
import os
import socket
import subprocess
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from launcher import settings
from launcher.core import paths
from launcher.core.errors import UserError
from launcher.core.files import foreign, make_folder, read_only, refuse_changes
from launcher.core.paths import own_command
from launcher.core.secret_values import keep
from launcher.inside.ppo_tui_inside import SPANS
from launcher.machine.host import oom_kills
from launcher.machine.sampler import VISIBLE, uuids, visible
from launcher.record import queued
from launcher.record.attempt import Followed, JobRef, LaunchRecord
from launcher.record.events import Action, read_kind
from launcher.record.layout import AttemptDir, RunDir
from launcher.record.process import ATTEMPT, RUN
from launcher.record.state import START_PATIENCE, RunState, StateFile, current
from launcher.runs.watch.checkpoints import latest_checkpoint
from launcher.runs.watch.run_settings import last_settings

if TYPE_CHECKING:
    from launcher.preset.translate import Launch

PATIENCE = 20.0  # seconds for the first sign of life of a supervisor that takes over
IN_TIME = START_PATIENCE - PATIENCE  # seconds for a new one's first sign of life; a later one ends
_AT_ONCE = 8  # runs that are taken over at once; each starts a process
_AGAIN = 60.0  # seconds before a failed takeover is retried
_failed: dict[Path, float] = {}
_PASSING = frozenset({"nccl", "worker-died", "engine-failed", "engine-sleep", "ray-start"})
_MEMORY = frozenset({"host-oom-ray", "host-oom-killed", "killed", "killed-not-oom"})
"""Causes that another program may bring about; if one recurs at the same step, the run itself is the cause."""
_FIRST = 30.0  # seconds before the first retry; each later one waits twice as long
_LOOK = 20.0  # seconds between two looks of a screen
_woken = 0.0


def write_launch(
    run: RunDir,
    attempt: AttemptDir,
    launch: "Launch",
    *,
    created: float,
    run_created: float | None = None,
    resume_step: int | None = None,
    cwd: Path | None = None,
    job: str | None = None,
    follow: Followed | None = None,
) -> None:
    """Writes launch.json for the supervisor.

    The driver inherits our environment, so no secret is written. The file also has the shell's GPUs, which the queue
    needs, and the folder for spans, unless the preset sets it. `cwd`: working directory of the driver, the run's
    folder, which may not have its final name yet. `job`: id of a running job. `follow`: a log.
    """
    later = f"-{attempt.number}" if attempt.number > 1 else ""
    ours = {VISIBLE: os.environ[VISIBLE]} if VISIBLE in os.environ and not launch.submit else {}
    if job is None and follow is None and settings.trace():
        make_folder(attempt.spans)
        ours[SPANS] = str(RunDir(cwd or run.path).attempt(attempt.number).spans.absolute())
    LaunchRecord(
        argv=tuple(launch.argv),
        env={**ours, **launch.env},
        unset=tuple(launch.unset),
        keys=launch.keys,
        cwd=launch.cwd or str(cwd or run.path),
        created=created,
        run_created=run_created or created,
        resume_step=resume_step,
        host=socket.gethostname(),
        gpus=() if launch.submit or follow else _gpus(launch),
        job=JobRef(launch.submit, job or f"{run.id}{later}") if launch.submit else None,
        follow=follow,
        oom_kills=None if launch.submit or follow else oom_kills(),
    ).write(attempt.launch)
    queued = RunState("queued", attempt=attempt.number, created=run_created or created, started=created, verdict="WARM")
    StateFile(run).write(queued)


def _gpus(launch: "Launch") -> tuple[str, ...]:
    """The UUIDs of the GPUs available to a driver of this machine."""
    on_cpu = launch.keys.get("trainer.device") == "cpu"
    return () if on_cpu else uuids(visible({**os.environ, **launch.env}))


def spawn_supervisor(run: RunDir) -> None:
    """Starts the supervisor of the newest attempt and waits for its first sign of life."""
    keep(os.environ)  # the driver inherits them
    process = _spawn(run)
    deadline = time.monotonic() + IN_TIME
    while current(run, checks=False).supervisor is None:
        if process.poll() is not None or time.monotonic() > deadline:
            raise UserError(f"the supervisor of run {run.id} did not start", f"see {run.supervisor_log}")
        time.sleep(0.02)


def orphaned(run: RunDir, state: RunState) -> bool:
    """Whether a local run of ours lost its supervisor and may get another one."""
    return _unattended(run, state) and untrusted(run) is None


def not_taken_over(run: RunDir, state: RunState) -> UserError | None:
    """The reason why a run without its supervisor is not taken over."""
    wrong = untrusted(run) if _unattended(run, state) else None
    return wrong and wrong.at(f"run {run.id} is not taken over")


def untrusted(run: RunDir) -> UserError | None:
    """The first record for a take-over or retry that other users own or may write."""
    attempt = run.attempt(max(run.attempt_numbers(), default=0))
    files = (run.run_yaml, run.state, run.control, attempt.path, attempt.launch, attempt.exit, attempt.ray)
    return next(filter(None, map(foreign, files)), None)


def _unattended(run: RunDir, state: RunState) -> bool:
    """Whether a run lacks its supervisor.

    `state` is from `current`, which includes whether the driver of such a run is alive. A driver in another container
    can only be followed there.
    """
    if state.driver_alive is None or (state.driver_alive and state.elsewhere is not None):
        return False
    attempt = run.last_attempt()
    if attempt is None or attempt.number != state.attempt:
        return False
    here = state.supervisor is not None and state.supervisor.this_boot
    with contextlib.suppress(OSError):
        ours = os.getuid() in (0, run.path.stat().st_uid) and os.access(run.path, os.W_OK)
        return ours and (here or attempt.read_launch().host == socket.gethostname())
    return False


def adopt(runs: Iterable[tuple[RunDir, RunState]]) -> list[RunDir]:
    """Starts a new supervisor for each run that lost its own, and waits for it; returns these runs.

    The supervisor's lock admits one of several processes. Runs with a live driver come first.
    """
    now = time.monotonic()
    untried = ((run, state) for run, state in runs if now - _failed.get(run.path, -math.inf) > _AGAIN)
    orphans = [(run, state) for run, state in untried if orphaned(run, state)]
    orphans.sort(key=lambda each: not each[1].driver_alive)
    adopted = []
    for run, _ in orphans[:_AT_ONCE]:
        with contextlib.suppress(OSError):
            adopted.append((run, _spawn(run, "--adopt")))
    deadline = time.monotonic() + PATIENCE
    for run, process in adopted:
        while process.poll() is None and time.monotonic() < deadline and not _attended(run):
            time.sleep(0.02)
        if orphaned(run, current(run, checks=False)):
            _failed[run.path] = time.monotonic()
    return [run for run, _ in adopted]


def _attended(run: RunDir) -> bool:
    """Whether a local supervisor wrote the run's state (not only took its lock), or the end is recorded."""
    state = current(run, checks=False)
    return state.over or (state.live and state.supervisor is not None and state.supervisor.alive())


def kept(run: RunDir, *, checks: bool = True) -> RunState:
    """The state of a run; starts a new supervisor first if it lost its own."""
    state = current(run, checks=checks)
    return current(run, checks=checks) if adopt([(run, state)]) else state


def ended(run: RunDir) -> RunState:
    """The state of a run after a new supervisor recorded the end of its attempt."""
    state, deadline = kept(run), time.monotonic() + PATIENCE
    # a driver of another container, whose run was taken over here, has shown no sign of life
    while state.live and (driver := state.driver) is not None and time.monotonic() < deadline:
        if not (driver.gone or (not driver.here and state.supervisor is not None and state.supervisor.here)):
            break
        time.sleep(0.05)
        state = current(run)
    return state


def _spawn(run: RunDir, *options: str) -> "subprocess.Popen[bytes]":
    return detached(["launcher.runs.supervise", str(run.path), *options], run.supervisor_log, run.path)


def detached(words: Sequence[str], log: Path, cwd: Path | None = None) -> "subprocess.Popen[bytes]":
    """Starts `python -m WORDS` in its own session, appending its output to `log`. Raises OSError."""
    refuse_changes(log)
    # a process that is started from within a run is not a part of it
    env = {name: value for name, value in os.environ.items() if name not in (RUN, ATTEMPT)}
    with log.open("ab") as out:
        return subprocess.Popen(
            own_command(*words),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            cwd=cwd,
            env=env,
        )


def wait_before_retry(run: RunDir, limit: int, cause: str | None, step: int | None) -> float | None:
    """Seconds before a retry; None: never, or after `limit` retries. `step`: last of the failed attempt."""
    before = [action for action in read_kind(run.events, Action) if action.verb == "retry"]
    if cause not in _PASSING | _MEMORY or len(before) >= limit or latest_checkpoint(run) is None:
        return None
    if cause in _MEMORY and before and before[-1].step == step:
        return None
    return _FIRST * float(2 ** len(before))


def retry(run: RunDir, folder: Path) -> None:
    """Starts `ppo-tui resume` with the newest resume's settings; its supervisor waits for the end of this process."""
    words = ["launcher.cli.main", "resume", folder.name, *last_settings(run)[1], "--detach"]
    detached(words, run.supervisor_log)


def follow_again(run: RunDir, folder: Path) -> None:
    """Follows the log that replaced a run's log, as another run."""
    detached(["launcher.runs.act.attach_file", str(folder)], run.supervisor_log)


def wake_queue(*, again: bool = False) -> None:
    """Starts `launcher.runs.act.queue_runner`, unless nothing waits or one is running. Raises OSError. `again`: for
    polling, starts at most one per 20 s.
    """
    global _woken
    if read_only() or (again and time.monotonic() - _woken < _LOOK):
        return
    if queued.paused() or not any(each.waits for each in queued.entries()):
        return
    _woken = time.monotonic()
    with queued.alone() as nobody:
        if not nobody:
            return
    detached(["launcher.runs.act.queue_runner"], paths.queue_dir() / "queue.log", paths.queue_dir())
