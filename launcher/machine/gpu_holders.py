"""Who holds memory on a GPU.

NVML knows pids, not owners. In a container they may be pids of the host, which mean somebody else here or
nobody: such a process is `unknown`, never "others". Of a process only its short name and its user are taken:
a command line may hold secrets.
"""

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import psutil

_FIRST_NAMESPACE = "pid:[4026531836]"  # fixed in Linux: the namespace of the host itself
_SHORT = 15  # letters that the kernel keeps of a name; psutil completes longer ones from the command line
_NOTHING = 1 << 30  # bytes that the driver itself may hold on a GPU where no process is
_MOVED = 1 << 29  # bytes that a process may take or give back before it is recorded at once


class Owner(NamedTuple):
    """Whose a process is: `run`, `others` or `unknown` (then without name and user)."""

    whose: str
    name: str | None = None
    user: str | None = None


def owner(pid: int, ours: Callable[[int], bool]) -> Owner:
    """The owner of a pid that NVML named; `ours` tells the pids of the run. Never raises."""
    if not ours(pid) and not _believable(pid):
        return Owner("unknown")
    name = user = None
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        name = process.name()[:_SHORT]
        user = process.username()
    return Owner("run" if ours(pid) else "others", name, user)


def run_share(found: Iterable[tuple[Owner, int | None]], used: int | None) -> int | None:
    """Bytes that the run holds on a device with so many `used`; None when that cannot be told."""
    found = list(found)
    ours = [size for who, size in found if who.whose == "run"]
    if ours:
        known = [size for size in ours if size is not None]
        return sum(known) if len(known) == len(ours) else None
    if any(who.whose == "unknown" for who, _ in found):
        return None
    return 0 if found or used is None or used < _NOTHING else None  # an empty list may be a hidden one


def differ(before: Mapping[int, int | None], now: Mapping[int, int | None]) -> bool:
    """Whether other processes hold a device, or one of them another half a GiB; bytes by pid."""
    return before.keys() != now.keys() or any(
        abs((now[pid] or 0) - (size or 0)) > _MOVED for pid, size in before.items()
    )


def in_session(pid: int, session: int | None) -> bool:
    """Whether a process belongs to this process session."""
    with contextlib.suppress(OSError):
        return session is not None and os.getsid(pid) == session
    return False


def _believable(pid: int) -> bool:
    """Whether this pid means the same process to NVML and to us."""
    if not psutil.pid_exists(pid):
        return False
    with contextlib.suppress(OSError):
        if str(Path("/proc/self/ns/pid").readlink()) == _FIRST_NAMESPACE:
            return True
        files = Path(f"/proc/{pid}/fd")
        return any(str(file.readlink()).startswith("/dev/nvidia") for file in files.iterdir())
    return False
