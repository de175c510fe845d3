"""Processes: identity that survives pid reuse, and whole process sessions.

Ray gives its workers process groups of their own, but they stay in the driver's process *session*: what
belongs to a run is found by session id, never by name, so that nothing of anybody else is touched.
"""

import contextlib
import functools
import os
from dataclasses import dataclass
from pathlib import Path

import psutil

from launcher.record.json import Record

_BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class ProcessId(Record):
    """A pid with its start, which tells it from a later process of the same pid.

    `started` is in unix seconds, for people: it moves when the clock is set. `ticks` since the start of the
    machine do not, and `boot` is the id of that start; both are None where the system does not tell.
    """

    pid: int
    started: float = 0.0
    ticks: int | None = None
    boot: str | None = None

    @classmethod
    def of(cls, pid: int) -> "ProcessId | None":
        """The process that has this pid now."""
        try:
            return cls(pid, psutil.Process(pid).create_time(), _ticks(pid), _boot())
        except psutil.Error:
            return None

    @property
    def here(self) -> bool:
        """Whether it belongs to this machine since its last start: elsewhere its pid says nothing."""
        return self.boot == _boot()

    def same(self, other: "ProcessId") -> bool:
        """Whether both are the same process."""
        if self.ticks is not None and other.ticks is not None:
            return (self.pid, self.ticks, self.boot) == (other.pid, other.ticks, other.boot)
        # the start of the machine that `started` is counted from may be off by some hundredths
        return self.pid == other.pid and abs(self.started - other.started) < 1.0

    def alive(self) -> bool:
        """Whether this very process runs (a zombie does not)."""
        now = ProcessId.of(self.pid) if self.here else None
        try:
            return now is not None and self.same(now) and _lives(self.pid)
        except psutil.Error:
            return False


def _ticks(pid: int) -> int | None:
    """Clock ticks between the start of the machine and that of a process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
        return int(stat.rpartition(b")")[2].split()[19])  # the name before it may hold blanks
    except (OSError, ValueError, IndexError):
        return None


@functools.cache
def _boot() -> str | None:
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return None


def _lives(pid: int) -> bool:
    return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def session_members(leader: ProcessId) -> list[psutil.Process]:
    """Live processes of the session which `leader` opened.

    The session keeps its id after the leader died; a new process that got the leader's pid would open a
    session of the same id, so a session older than its leader's name is required.
    """
    current = ProcessId.of(leader.pid)
    if not leader.here or (current is not None and not current.same(leader)):
        return []
    members = []
    for pid in psutil.pids():
        with contextlib.suppress(psutil.Error, OSError):
            if os.getsid(pid) == leader.pid and _lives(pid):
                members.append(psutil.Process(pid))
    return members
