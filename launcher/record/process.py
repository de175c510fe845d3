"""Processes: identity despite pid reuse, process sessions, all processes of a run, and locks.

Ray gives its workers separate process groups, but they stay in the driver's process *session*. Processes that left it
are found by `PPO_TUI_RUN` in their environment, among the user's own. Names are never used, so that other programs are
never affected.
"""

import contextlib
import fcntl
import functools
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from launcher.record.json import RARE, Record

if TYPE_CHECKING:
    import psutil  # imported on use: a fiftieth of the screen's start, which only checks what is alive

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_SOON = 0.005  # seconds between two tries to take a lock
RUN, ATTEMPT = "PPO_TUI_RUN", "PPO_TUI_ATTEMPT"
"""Environment variables of a run's processes: its id, and the number of the attempt."""


@dataclass(frozen=True, slots=True)
class ProcessId(Record):
    """A pid with its start time, which distinguishes it from a later process with the same pid.

    `started`: unix seconds, for people; changes when the clock is set. `ticks` (since boot) does not; `boot`: id of the
    boot; both are None if not reported. `namespace`: pid namespace of the pid; None, as in older records, means the
    reader's own.
    """

    pid: int
    started: float = 0.0
    ticks: int | None = None
    boot: str | None = None
    namespace: int | None = field(default=None, metadata=RARE)

    @classmethod
    def of(cls, pid: int) -> "ProcessId | None":
        """The current process with this pid."""
        import psutil

        try:
            return cls(pid, psutil.Process(pid).create_time(), _ticks(pid), _boot(), _namespace())
        except psutil.Error:
            return None

    @property
    def this_boot(self) -> bool:
        """Whether it is a process of this machine since its last boot, perhaps in another container."""
        return self.boot == _boot()

    @property
    def here(self) -> bool:
        """Whether its pid is valid here: in this pid namespace since the last boot."""
        return self.this_boot and self.namespace in (None, _namespace())

    @property
    def gone(self) -> bool:
        """Whether this process is known to have ended."""
        return self.here and not self.alive()

    def same(self, other: "ProcessId") -> bool:
        """Whether both are the same process."""
        if self.ticks is not None and other.ticks is not None:
            known = (self.pid, self.ticks, self.boot) == (other.pid, other.ticks, other.boot)
            return known and (self.namespace or _namespace()) == (other.namespace or _namespace())
        # the start of the machine that `started` is counted from may be off by some hundredths
        return self.pid == other.pid and abs(self.started - other.started) < 1.0

    def alive(self) -> bool:
        """Whether this process runs (a zombie does not)."""
        if not self.here:
            return False
        if self.ticks is not None:
            stat = stat_fields(self.pid)
            return stat[19:20] == [b"%d" % self.ticks] and stat[0] != b"Z"
        import psutil

        now = ProcessId.of(self.pid)
        try:
            return now is not None and self.same(now) and _lives(self.pid)
        except psutil.Error:
            return False


def _ticks(pid: int) -> int | None:
    """Clock ticks from the boot to the start of a process."""
    try:
        return int(stat_fields(pid)[19])
    except (ValueError, IndexError):
        return None


def stat_fields(pid: int | str) -> list[bytes]:
    """The fields of /proc/PID/stat from the state (R, S, Z, ...) on; empty without any."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()  # the name before it may hold blanks
    except OSError:
        return []


@functools.cache
def _boot() -> str | None:
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return None


@functools.cache
def _namespace() -> int | None:
    try:
        return Path("/proc/self/ns/pid").stat().st_ino
    except OSError:
        return None


def _lives(pid: int) -> bool:
    import psutil

    return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def run_members(leader: ProcessId, run_id: str) -> "Iterator[psutil.Process]":
    """Live processes of a run: first its driver's session, then processes that left it."""
    import psutil

    seen = set()
    for process in _session(leader):
        seen.add(process.pid)
        yield process
    for pid in run_processes(run_id) if run_id else ():
        if pid not in seen:
            with contextlib.suppress(psutil.Error):
                yield psutil.Process(pid)


def session_members(leader: ProcessId) -> "list[psutil.Process]":
    """Live processes of the session opened by `leader`, also after its death; empty if its pid is reused."""
    return list(_session(leader))


def _session(leader: ProcessId) -> "Iterator[psutil.Process]":
    import psutil

    current = ProcessId.of(leader.pid)
    if not leader.here or (current is not None and not current.same(leader)):
        return
    for pid in psutil.pids():
        with contextlib.suppress(psutil.Error, OSError):
            if os.getsid(pid) == leader.pid and _lives(pid):
                yield psutil.Process(pid)


def run_processes(run_id: str, attempt: int | None = None) -> list[int]:
    """Pids of this user's live processes started by a run or one attempt, without this process."""
    wanted = {f"{RUN}={run_id}".encode()} | ({f"{ATTEMPT}={attempt}".encode()} if attempt is not None else set())
    return [pid for pid, environment in _environments() if wanted <= environment]


def processes_of_runs() -> list[tuple[int, str]]:
    """Pids of this user's live processes started by runs, with the ids of these runs."""
    start = f"{RUN}=".encode()
    return [
        (pid, variable[len(start) :].decode(errors="replace"))
        for pid, environment in _environments()
        for variable in environment
        if variable.startswith(start)
    ]


def _environments() -> Iterator[tuple[int, set[bytes]]]:
    """The initial environment of each live process of this user, without this process."""
    import psutil

    for pid in psutil.pids():
        folder = Path(f"/proc/{pid}")
        with contextlib.suppress(psutil.Error, OSError):
            if pid != os.getpid() and folder.stat().st_uid == os.getuid():
                content = (folder / "environ").read_bytes()
                if RUN.encode() in content and _lives(pid):
                    yield pid, set(content.split(b"\0"))


def lock(path: Path, patience: float = 0.0) -> int | None:
    """Locks a folder or file (which is made) until the descriptor is closed.

    Waits at most `patience` seconds for another holder. None if the file system has no locks. Raises BlockingIOError if
    another process still holds it, OSError.
    """
    how = os.O_RDONLY if path.is_dir() else os.O_CREAT | os.O_RDWR
    descriptor = os.open(path, how | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
        except OSError as error:
            waits = isinstance(error, BlockingIOError)
            if not waits or time.monotonic() >= deadline:
                os.close(descriptor)
                if waits:
                    raise
                return None
        time.sleep(_SOON)


def is_locked(path: Path) -> bool | None:
    """Whether another process holds the lock of a folder or file. Writes nothing; None if unknown.

    Takes a shared lock for a moment, so whoever wants the lock should have some patience.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return True if isinstance(error, BlockingIOError) else None
    else:
        return False
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def locked(path: Path, patience: float = 0.0) -> Iterator[bool]:
    """Holds a lock; yields False if the file system has none. Raises as `lock` does."""
    held = lock(path, patience)
    try:
        yield held is not None
    finally:
        if held is not None:
            os.close(held)
