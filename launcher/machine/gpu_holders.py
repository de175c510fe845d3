"""Owners of the processes that use a GPU's memory.

NVML returns pids, not owners. In a container they may be pids of the host, which belong to another process here or to
none: such a process is `unknown`, never "others". Only a process's short name and user are read, because a command line
may contain secrets.
"""

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import psutil

_FIRST_NAMESPACE = "pid:[4026531836]"  # fixed in Linux: the namespace of the host itself
_SHORT = 15  # letters of a name in the kernel; psutil completes longer names from the command line
_NOTHING = 1 << 30  # bytes that the driver itself may hold on a GPU without a process
_MOVED = 1 << 29  # bytes that a process may take or give back before it is recorded at once


class Owner(NamedTuple):
    """The owner of a process: `run`, `others` or `unknown` (then without name and user)."""

    whose: str
    name: str | None = None
    user: str | None = None


def owner(pid: int, of_run: Callable[[int], bool]) -> Owner:
    """The owner of a pid that NVML returned; `of_run` recognizes the pids of the run. Never raises."""
    if not of_run(pid) and not _believable(pid):
        return Owner("unknown")
    name = user = None
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        name = process.name()[:_SHORT]
        user = process.username()
    return Owner("run" if of_run(pid) else "others", name, user)


def run_share(holders: Iterable[tuple[Owner, int | None]], used: int | None) -> int | None:
    """The run's bytes on a device with `used` bytes; None if unknown."""
    holders = list(holders)
    sizes = [size for who, size in holders if who.whose == "run"]
    if sizes:
        known = [size for size in sizes if size is not None]
        return sum(known) if len(known) == len(sizes) else None
    if any(who.whose == "unknown" for who, _ in holders):
        return None
    return 0 if holders or used is None or used < _NOTHING else None  # an empty list may hide a process


def differ(before: Mapping[int, int | None], now: Mapping[int, int | None]) -> bool:
    """Whether the processes on a device changed, or one's size by half a GiB; bytes by pid."""
    return before.keys() != now.keys() or any(
        abs((now[pid] or 0) - (size or 0)) > _MOVED for pid, size in before.items()
    )


def in_session(pid: int, session: int | None) -> bool:
    """Whether a process belongs to this process session."""
    with contextlib.suppress(OSError):
        return session is not None and os.getsid(pid) == session
    return False


def _believable(pid: int) -> bool:
    """Whether NVML and ppo-tui see the same process under this pid."""
    if not psutil.pid_exists(pid):
        return False
    with contextlib.suppress(OSError):
        if str(Path("/proc/self/ns/pid").readlink()) == _FIRST_NAMESPACE:
            return True
        files = Path(f"/proc/{pid}/fd")
        return any(str(file.readlink()).startswith("/dev/nvidia") for file in files.iterdir())
    return False
