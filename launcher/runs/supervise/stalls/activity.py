"""Whether a run is active: CPU and I/O of its processes, from /proc, and how long it may stay quiet.

Ray's own processes and idle workers use up to 3 % of a core and read /proc all the time; they do not count.
"""

import contextlib
import os
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from launcher.record.process import ProcessId, run_members

_RAY = re.compile(
    rb"/ray/core/src/ray/(?:gcs|raylet)/|/ray/(?:dashboard|autoscaler|_private)/.*(?:agent|monitor|main)\.py|"
    rb"^ray::(?:DashboardAgent|RuntimeEnvAgent|IDLE)"
)
_COMPILER = re.compile(
    rb"^\S*/?(?:nvcc|cicc|ptxas|fatbinary|ninja|cc1plus|cc1|g\+\+|gcc|c\+\+|clang\S*|ld|triton\S*)\b|compile_worker"
)
_CPU = 0.05  # cores of one process; idle workers use up to 0.03
_STARVED = (0.03, 0.5)  # cores that a process used, and that it used or waited for, on a busy machine
_WRITTEN, _FETCHED = 8 << 10, 64 << 10  # bytes per second of one process, written at all and read from a disk
_LOOKED = 10.0  # seconds between two scans of /proc for new processes
_TICK = os.sysconf("SC_CLK_TCK")

QUIET = 10.0  # minimum seconds without activity
UNUSUAL = 2.0  # multiple of a stage's usual time
LEAST = 20.0  # minimum seconds of a stage
UNPASSED = 120.0  # seconds without any activity in a stage that was never passed
SLOWEST = 1.2  # multiple of a stage's longest time so far


@dataclass
class Counter:
    """The CPU time and I/O of one process so far."""

    cpu: float
    waited: float  # seconds that it was ready and had no core
    written: int
    fetched: int
    compiler: bool = False


@dataclass
class Used:
    """The CPU time and I/O of all processes in an interval; `busy`: the active ones."""

    seconds: float
    pids: list[int]
    busy: list[int]
    cpu: float = 0.0
    compiled: float = 0.0
    starved: float = 0.0
    fetched: int = 0


class Activity:
    """Follows the processes of a run."""

    def __init__(self, driver: ProcessId, run: str) -> None:
        self._driver, self._run = driver, run
        self.pids: list[int] = []
        self._looked, self._at = -_LOOKED, time.monotonic()
        self._known: dict[int, Counter] = {}

    def used(self) -> Used:
        """The CPU time and I/O since the last call."""
        now = time.monotonic()
        if now - self._looked >= _LOOKED:
            self.pids = [process.pid for process in run_members(self._driver, self._run)]
            self._looked = now
        seconds, self._at = max(now - self._at, 0.1), now
        before, self._known = self._known, counters(self.pids)
        total = Used(seconds, list(self._known), [])
        for pid, counter in self._known.items():
            earlier = before.get(pid) or Counter(0.0, 0.0, 0, 0)
            cpu = max(0.0, counter.cpu - earlier.cpu)
            total.cpu += cpu
            total.compiled += cpu * counter.compiler
            total.starved += max(0.0, counter.waited - earlier.waited)
            total.fetched += max(0, counter.fetched - earlier.fetched)
            if _active(before.get(pid), counter, seconds):
                total.busy.append(pid)
        return total


def _active(before: Counter | None, now: Counter, seconds: float) -> bool:
    if before is None:  # a new process
        return now.cpu > 0
    cpu, wanted = (now.cpu - before.cpu) / seconds, (now.waited - before.waited) / seconds
    if cpu > _CPU or (cpu > _STARVED[0] and cpu + wanted > _STARVED[1]):
        return True
    written, fetched = (now.written - before.written) / seconds, (now.fetched - before.fetched) / seconds
    return written > _WRITTEN or fetched > _FETCHED


def counters(pids: Iterable[int]) -> dict[int, Counter]:
    """CPU seconds and bytes of these processes and their reaped children, without Ray's own."""
    found = {}
    for pid in pids:
        with contextlib.suppress(OSError, IndexError, ValueError):
            folder = Path(f"/proc/{pid}")
            words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").strip()
            if _RAY.search(words):
                continue
            stat = (folder / "stat").read_bytes().rpartition(b")")[2].split()
            used = Counter(sum(map(int, stat[11:15])) / _TICK, 0.0, 0, 0)
            with contextlib.suppress(OSError):  # a kernel without it
                used.waited = int((folder / "schedstat").read_bytes().split()[1]) / 1e9
            with contextlib.suppress(OSError):  # the process of another user
                rows = dict(row.split(b": ") for row in (folder / "io").read_bytes().splitlines())
                used.written, used.fetched = int(rows[b"wchar"]), int(rows[b"read_bytes"])
            used.compiler = _COMPILER.search(words) is not None
            found[pid] = used
    return found


@dataclass(frozen=True)
class Stage:
    """The current stage of a run, its start, and its earlier median and maximum seconds (None if never passed)."""

    name: str
    since: float
    usual: float | None = None
    longest: float | None = None

    @property
    def patience(self) -> float | None:
        """Seconds after which a quiet run hangs in this stage."""
        if self.usual is None:
            return None
        return max(LEAST, UNUSUAL * self.usual, SLOWEST * (self.longest or 0.0))


class Patience:
    """Decides from activity when to look for a hang. Times are from `launcher.core.clock`."""

    def __init__(self, now: float) -> None:
        self.moved = now  # when it last did anything
        self.progressed = now  # when it last printed or reached a stage
        self._longest = 0.0  # longest quiet that ended by itself
        self._next = 0.0  # seconds without progress before the next look at a busy run
        self._lasted: dict[str, float] = {}  # the longest standstill of each title that ended
        self._held = 0.0  # time of the next look, unless the run makes progress

    def note(self, now: float, *, busy: bool, printed: float | None, stage: Stage, stood: bool = False) -> None:
        """Takes in recent activity. `printed`: time of the last output. `stood`: the run had a reason to wait."""
        progressed = max(printed or 0.0, stage.since)
        if progressed > self.progressed:
            self.progressed, self._next, self._held = progressed, 0.0, 0.0
        moved = now if busy else progressed
        if moved > self.moved:
            self._longest = max(self._longest, 0.0 if stood else moved - self.moved)
            self.moved = moved

    def ended(self, title: str, seconds: float) -> None:
        """Records the duration of a hang; the next one with this title is reported only after a longer time."""
        self._lasted[title] = max(self._lasted.get(title, 0.0), seconds)

    def too_soon(self, now: float, title: str, since: float) -> bool:
        """Whether a longer hang with this title ended before; if so, delays the next look."""
        self._held = since + min(UNPASSED, SLOWEST * self._lasted.get(title, 0.0))
        return now < self._held

    def stands(self, now: float, stage: Stage) -> bool:
        """Whether the run hangs: quiet for longer than ever before, or quiet and too long in a stage."""
        quiet = now - self.moved
        if now < self._held:
            return False
        if quiet >= max(UNPASSED, UNUSUAL * self._longest):
            return True
        return stage.patience is not None and now - stage.since >= stage.patience and quiet >= QUIET

    def worth_a_look(self, now: float, stage: Stage) -> bool:
        """Whether a busy run makes no progress for so long that it is examined for certain reasons."""
        waited = now - self.progressed
        if now < self._held or waited < max(self._next, stage.patience or UNPASSED):
            return False
        self._next = 2 * waited
        return True
