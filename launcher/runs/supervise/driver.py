"""The veRL driver: started in its own session, stopped with all its processes."""

import contextlib
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from launcher.machine.ray_jobs import authentication, token
from launcher.record.process import ProcessId, run_members
from launcher.verl.config import ray_address

PATIENCE = 6.0  # seconds between SIGTERM and SIGKILL; veRL 0.9.1 on a GPU needs 4 to 5.5


def spawn(argv: Sequence[str], env: Mapping[str, str], cwd: Path, console: Path) -> "subprocess.Popen[bytes]":
    """Starts the driver in its own session, with its output in a file, because a broken pipe would end it."""
    with console.open("ab") as out:
        return subprocess.Popen(
            argv,
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            close_fds=True,
        )


class Driver:
    """The driver of an attempt: a child of this process, or of an earlier supervisor."""

    stopped_by: str | None = None  # who ended it, where the supervisor did not
    away: str | None = None  # why its state is unknown; never for a local one
    trouble: str | None = None  # why it could not start or be stopped, if its console does not show that

    def __init__(self, id: ProcessId, run: str, process: "subprocess.Popen[bytes] | None" = None) -> None:
        self.id: ProcessId | None = id
        self._id, self._run, self._process = id, run, process

    def running(self) -> bool:
        """Whether it runs; reaps an ended child."""
        return self._id.alive() if self._process is None else self._process.poll() is None

    def terminate(self) -> None:
        """Sends SIGTERM."""
        with contextlib.suppress(OSError):
            os.kill(self._id.pid, signal.SIGTERM)

    def kill(self) -> None:
        """Sends SIGKILL to all processes of the run."""
        kill(self._id, self._run)

    def stop_orphan(self) -> None:
        """Ends the driver after the run's folder was removed, so that nobody could watch or stop it."""
        stop(self._id, self._run)

    def status(self) -> tuple[int | None, str | None]:
        """Exit code and signal of an ended driver, as `exit_status`; only available to the parent."""
        return (None, None) if self._process is None else exit_status(self._process.wait())

    def clear(self) -> list[str]:
        """Ends the driver's remaining processes; returns those still alive."""
        return [] if wait_gone(self._id, self._run, 2.0) else sweep(self._id, self._run)


def stop(driver: ProcessId, run: str = "", patience: float = PATIENCE) -> list[str]:
    """Ends the driver and all processes of its run; returns those still alive (usually none). SIGTERM lets Ray and vLLM
    shut down; after `patience` seconds the others get SIGKILL. SIGINT is not used: a driver started in the background
    may ignore it.
    """
    if driver.alive():
        with contextlib.suppress(OSError):
            os.kill(driver.pid, signal.SIGTERM)
        if wait_gone(driver, run, patience):
            return []
    return sweep(driver, run)


def sweep(driver: ProcessId, run: str = "", patience: float = 3.0) -> list[str]:
    """Kills processes left by an ended driver; returns pids and names of those still alive."""
    deadline = time.monotonic() + patience
    while kill(driver, run) and time.monotonic() < deadline:  # a process may start another one
        time.sleep(0.1)
    left = []
    for process in run_members(driver, run):
        with contextlib.suppress(Exception):
            left.append(f"{process.pid} {process.name()}")
    return left


def kill(driver: ProcessId, run: str = "") -> int:
    """Sends SIGKILL to every process of the run, first those in its session; returns their number."""
    sent = 0
    for process in run_members(driver, run):
        with contextlib.suppress(psutil.Error):
            process.kill()
            sent += 1
    return sent


def wait_gone(driver: ProcessId, run: str, patience: float) -> bool:
    """Waits until all processes of the run have ended."""
    deadline = time.monotonic() + patience
    while any(True for _ in run_members(driver, run)):
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.1)
    return True


def exit_status(returncode: int) -> tuple[int, str | None]:
    """Exit code as in a shell, and the signal's name: -6 and 134 are (134, "SIGABRT")."""
    number = -returncode if returncode < 0 else returncode - 128 if returncode > 128 else 0
    with contextlib.suppress(ValueError):
        if number:
            return 128 + number, signal.Signals(number).name
    return returncode, None


def ray_authentication(file: Path, keys: Mapping[str, Any]) -> dict[str, str]:
    """Variables for the driver's Ray in a run with these veRL keys.

    A user without a token gets one for the run's lifetime. It is in the driver's environment, which survives a moved
    folder, and in `file`, for `RAY_AUTH_TOKEN_PATH=... ray status`.
    """
    address = ray_address(keys)
    if address != "local":
        return authentication() if address else {}
    if os.environ.get("RAY_AUTH_MODE") or token():
        return {}
    made = secrets.token_hex(32)
    with contextlib.suppress(OSError):  # a full disk
        file.touch(mode=0o600)
        file.write_text(made)
    return {"RAY_AUTH_TOKEN": made}
