"""The veRL driver: started in a session of its own, stopped with everything below it."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from launcher.record.process import ProcessId, session_members

PATIENCE = 6.0  # seconds between SIGTERM and SIGKILL; veRL 0.9.1 on a GPU needs 4 to 5.5


def spawn(argv: Sequence[str], env: Mapping[str, str], cwd: Path, console: Path) -> "subprocess.Popen[bytes]":
    """Starts the driver: own session, no terminal, output to a file.

    Never a pipe: its reader may die, and a driver that prints into a broken pipe dies with it.
    """
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


def stop(driver: ProcessId, patience: float = PATIENCE) -> list[str]:
    """Ends the driver and all processes of its session; returns what is left (nothing, as it should be).

    SIGTERM to the driver lets Ray and vLLM unwind; what lives after `patience` seconds gets SIGKILL.
    SIGINT would not do: a driver started in the background may ignore it.
    """
    if driver.alive():
        with contextlib.suppress(OSError):
            os.kill(driver.pid, signal.SIGTERM)
        if wait_gone(driver, patience):
            return []
    return sweep(driver)


def sweep(driver: ProcessId, patience: float = 3.0) -> list[str]:
    """Kills what an ended driver left in its session; returns the command lines of what would not die."""
    kill_session(driver)
    wait_gone(driver, patience)
    left = []
    for process in session_members(driver):
        with contextlib.suppress(Exception):
            left.append(f"{process.pid} {process.name()}")
    return left


def kill_session(leader: ProcessId, number: int = signal.SIGKILL) -> int:
    """Sends a signal to every process of the session; returns how many got it."""
    sent = 0
    for process in session_members(leader):
        with contextlib.suppress(psutil.Error):
            process.send_signal(number)
            sent += 1
    return sent


def wait_gone(driver: ProcessId, patience: float) -> bool:
    """Waits until no process of the session is left."""
    deadline = time.monotonic() + patience
    while session_members(driver):
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.1)
    return True


def exit_status(returncode: int) -> tuple[int, str | None]:
    """Exit code as a shell shows it, and the signal's name: -6 is (134, "SIGABRT"), 134 as well."""
    number = -returncode if returncode < 0 else returncode - 128 if returncode > 128 else 0
    with contextlib.suppress(ValueError):
        if number:
            return 128 + number, signal.Signals(number).name
    return returncode, None
