"""Processes: identity that survives pid reuse, and whole process sessions.

Ray gives its workers process groups of their own, but they stay in the driver's process *session*: what
belongs to a run is found by session id, never by name, so that nothing of anybody else is touched.
"""

import contextlib
import os
import signal
from dataclasses import dataclass

import psutil


@dataclass(frozen=True)
class ProcessId:
    """A pid with its start time (unix seconds), which tells it from a later process of the same pid."""

    pid: int
    started: float

    @classmethod
    def of(cls, pid: int) -> "ProcessId | None":
        """The process that has this pid now."""
        try:
            return cls(pid, psutil.Process(pid).create_time())
        except psutil.Error:
            return None

    @classmethod
    def from_json(cls, value: object) -> "ProcessId | None":
        if isinstance(value, dict) and isinstance(value.get("pid"), int):
            return cls(value["pid"], float(value.get("started") or 0.0))
        return None

    def to_json(self) -> dict[str, float]:
        return {"pid": self.pid, "started": self.started}

    def alive(self) -> bool:
        """Whether this very process runs (a zombie does not)."""
        try:
            process = psutil.Process(self.pid)
            # the boot time that create_time is counted from may be off by some hundredths
            return (
                abs(process.create_time() - self.started) < 1.0 and process.status() != psutil.STATUS_ZOMBIE
            )
        except psutil.Error:
            return False


def session_members(leader: ProcessId) -> list[psutil.Process]:
    """Live processes of the session which `leader` opened.

    The session keeps its id after the leader died; a new process that got the leader's pid would open a
    session of the same id, so a session older than its leader's name is required.
    """
    members = []
    current = ProcessId.of(leader.pid)
    if current is not None and abs(current.started - leader.started) >= 1.0:
        return []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if os.getsid(process.pid) == leader.pid and process.status() != psutil.STATUS_ZOMBIE:
                members.append(process)
    return members


def kill_session(leader: ProcessId, number: int = signal.SIGKILL) -> int:
    """Sends a signal to every process of the session; returns how many got it."""
    sent = 0
    for process in session_members(leader):
        with contextlib.suppress(psutil.Error):
            process.send_signal(number)
            sent += 1
    return sent
