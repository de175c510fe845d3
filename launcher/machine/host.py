"""The host of a run: its memory, CPUs and disks, and the kernel's out-of-memory kills."""

import contextlib
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import psutil

from launcher.record.attempt import OF_HOST, OomKills
from launcher.record.machine import DiskSpace, HostSample

_CGROUP = Path("/sys/fs/cgroup")
_OWN_GROUPS = Path("/proc/self/cgroup")
_KILLS = "oom_kill"
_PRESSURE = Path("/proc/pressure/cpu")
_NOT_BUSY = ("idle", "iowait", "steal")
_IN_OTHERS = {"guest", "guest_nice"}  # Linux counts them as user and nice


def host_memory() -> tuple[int, int]:
    """Used and total bytes of the machine, or of the container if it has less."""
    memory = psutil.virtual_memory()
    used, total = int(memory.total - memory.available), int(memory.total)
    with contextlib.suppress(OSError, ValueError):
        limit = int((_CGROUP / "memory.max").read_text())
        if limit < total:
            lines = (_CGROUP / "memory.stat").read_text().splitlines()
            cache = next((int(line.split()[1]) for line in lines if line.startswith("inactive_file ")), 0)
            return int((_CGROUP / "memory.current").read_text()) - cache, limit
    return used, total


class Usage:
    """CPU use of the host and of a run's processes between two calls."""

    def __init__(self) -> None:
        self._times: dict[str, float] = {}
        self._run: dict[int, float] = {}
        self._at = time.monotonic()

    def host(self) -> HostSample:
        """A sample of the host; without its CPUs the first time."""
        sample = HostSample(*host_memory())
        with contextlib.suppress(OSError):  # a system without load or times
            times, cores = psutil.cpu_times()._asdict(), psutil.cpu_count() or 0
            before, self._times = self._times, times
            used = {name: times[name] - before[name] for name in times.keys() & before.keys() - _IN_OTHERS}
            if cores and (whole := sum(used.values())) > 0:
                share = cores / whole
                idle = sum(used.get(name, 0.0) for name in _NOT_BUSY)
                return replace(
                    sample,
                    load=round(os.getloadavg()[0], 2),
                    cores=cores,
                    busy=round((whole - idle) * share, 2),
                    stolen=round(used.get("steal", 0.0) * share, 2),
                    waiting=_pressure(),
                )
        return sample

    def run(self, pids: Iterable[int]) -> float | None:
        """Cores used by these processes and their ended children; None if no process was known before."""
        now, seconds = time.monotonic(), dict[int, float]()
        for pid in pids:
            with contextlib.suppress(psutil.Error):
                seconds[pid] = sum(psutil.Process(pid).cpu_times()[:4])  # user and system, of itself and of children
        before, self._run = self._run, seconds
        passed, self._at = now - self._at, now
        if not before.keys() & seconds.keys() or passed <= 0:
            return None
        return round(sum(max(seconds[pid] - before.get(pid, 0.0), 0.0) for pid in seconds) / passed, 2)


def _pressure() -> float | None:
    """The share of the last 10 s in which a task waited for a core; None for a kernel without PSI."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return round(float(_PRESSURE.read_text().split("avg10=")[1].split()[0]) / 100, 4)
    return None


def oom_kills(counter: str | None = None) -> OomKills:
    """The counters of the kernel's out-of-memory killer. `counter`: a control group's file [default: this process's,
    which child processes inherit].
    """
    for file in [Path(counter)] if counter else _counters():
        if (kills := _kills(file)) is not None:
            return OomKills(_kills(Path(OF_HOST)), kills, str(file))
    return OomKills(_kills(Path(OF_HOST)))


def _counters() -> Iterator[Path]:
    """Counter files for this process's control group: version 2, then version 1. In a container, the group's path may
    be that on the host, and its own group is the root.
    """
    with contextlib.suppress(OSError):
        for line in _OWN_GROUPS.read_text().splitlines():
            _, kind, group = line.split(":", 2)
            for place in (group.strip("/"), ""):
                if not kind:
                    yield _CGROUP / place / "memory.events"
                elif "memory" in kind.split(","):
                    yield _CGROUP / "memory" / place / "memory.oom_control"


def _kills(file: Path) -> int | None:
    with contextlib.suppress(OSError, ValueError):
        rows = (line.split() for line in file.read_text().splitlines())
        return next((int(row[1]) for row in rows if row[:1] == [_KILLS]), None)
    return None


def disks(folders: Iterable[Path]) -> tuple[DiskSpace, ...]:
    """The file systems of these folders, each once, without unreadable folders."""
    found: dict[int, DiskSpace] = {}
    for folder in folders:
        with contextlib.suppress(OSError):
            room = os.statvfs(folder)
            free = room.f_bfree if os.geteuid() == 0 else room.f_bavail  # root may use the reserved part
            space = DiskSpace(str(folder.absolute()), free * room.f_frsize, room.f_blocks * room.f_frsize)
            found.setdefault(folder.stat().st_dev, space)
    return tuple(found.values())
