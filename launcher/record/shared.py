"""shared.json of an attempt: shared memory and sockets of its processes, which remain when they are killed.

A file is recorded while a process of the run maps it or is bound to it, and only with one of these names:

* CUDA: `cuda.shm.UID.PID.N`; it stays even when the process ends by itself
* NCCL: `nccl-XXXXXX` (`src/misc/shmutils.cc`)
* vLLM: `psm_XXXXXXXX` of Python (`distributed/device_communicators/shm_broadcast.py`), and sockets with a UUID in the
  temporary folder (`utils/network_utils.py: get_open_zmq_ipc_path`)
* veRL: `verl_weights_...` and `rl-colocate-zmq-....sock` (`workers/rollout/vllm_rollout/bucketed_weight_transfer.py`)
* torch: `torch_PID_...`, with its sharing strategy `file_system`

Ray's object store leaves nothing: it removes the name of its file after opening it (`plasma/dlmalloc.cc`).
"""

import contextlib
import os
import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from launcher.record.json import Record
from launcher.record.layout import RunDir
from launcher.record.ray_session import open_files

_MEMORY, _BINDINGS = "/dev/shm", Path("/proc/net/unix")
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_MAPPED = re.compile(
    r"cuda\.shm(?:\.[0-9a-f]+){3}|nccl-\w{6}|psm_[0-9a-f]{8}|verl_weights_[0-9a-f]{32}|torch(?:_\d+){3}"
)
_BOUND = re.compile(rf"/.+/(?:(?:[^/]+-)?{_UUID}|rl-colocate-zmq-[^/]+\.sock)")

Inode = tuple[int, int]
"""Device and inode of a file."""


@dataclass(frozen=True, slots=True)
class SharedFile(Record):
    """Shared memory or a socket; `device`, `inode` and `changed` (ctime in ns) identify it at its path."""

    path: str
    device: int
    inode: int
    changed: int

    @classmethod
    def of(cls, path: str) -> "SharedFile | None":
        """The file at this path, if it belongs to this user and no one else can map it."""
        with contextlib.suppress(OSError):
            status = Path(path).lstat()
            ours = status.st_uid == os.getuid()
            if ours and (
                stat.S_ISSOCK(status.st_mode) or (stat.S_ISREG(status.st_mode) and not status.st_mode & 0o077)
            ):
                return cls(path, status.st_dev, status.st_ino, status.st_ctime_ns)
        return None

    @property
    def key(self) -> Inode:
        return self.device, self.inode

    @property
    def bytes(self) -> int:
        """Its size in memory."""
        with contextlib.suppress(OSError):
            return Path(self.path).lstat().st_blocks * 512
        return 0

    @property
    def kind(self) -> Literal["memory", "socket"]:
        return "memory" if self.path.startswith(f"{_MEMORY}/") else "socket"

    @property
    def left(self) -> bool:
        """Whether this file still exists."""
        return SharedFile.of(self.path) == self

    def remove(self) -> None:
        """Removes it if it still exists. Raises OSError."""
        if self.left:
            Path(self.path).unlink()


@dataclass(frozen=True, slots=True)
class Shared(Record):
    """The files that an attempt's processes have made and not removed."""

    files: tuple[SharedFile, ...] = ()

    def grown(self, pids: Iterable[int], since: float) -> "Shared":
        """Adds files of these processes that changed after `since` (unix seconds). Cheap if none did."""
        paths = [str(path) for path in Path(_MEMORY).glob("*") if _MAPPED.fullmatch(path.name)]
        found = [file for path in (*paths, *_bound()) if (file := SharedFile.of(path)) and file.changed > since * 1e9]
        new = [file for file in found if file not in self.files]
        used = _used_by(pids) if new else set()
        if made := [file for file in new if file.key in used]:
            return Shared((*(file for file in self.files if file.left), *made))
        return self


def shared_by(run: RunDir) -> list[SharedFile]:
    """Shared memory and sockets left by a run's attempts and unused."""
    attempts = (Shared.read(run.attempt(number).shared) or Shared() for number in run.attempt_numbers())
    files = dict.fromkeys(file for shared in attempts for file in shared.files if file.left)
    used = in_use() if files else set()
    return [file for file in files if file.key not in used]


def in_use() -> set[Inode]:
    """All shared memory mapped or held open by any process, and all bound sockets."""
    import psutil

    return _used_by(psutil.pids()) | {file for file, _ in _bound().values()}


def _used_by(pids: Iterable[int]) -> set[Inode]:
    """Shared memory mapped or held open by these processes, and their bound sockets."""
    sockets = {f"socket:[{number}]": file for file, numbers in _bound().values() for number in numbers}
    used = set()
    for pid in pids:
        with contextlib.suppress(OSError, ValueError):
            for line in Path(f"/proc/{pid}/maps").read_bytes().splitlines():
                if b" /dev/shm/" in line:
                    device, inode = line.split(maxsplit=5)[3:5]
                    used.add((os.makedev(*(int(part, 16) for part in device.split(b":"))), int(inode)))
        for opened in open_files(pid):
            if opened in sockets:
                used.add(sockets[opened])
            elif opened.startswith(f"{_MEMORY}/"):
                with contextlib.suppress(OSError):
                    status = Path(opened).stat()
                    used.add((status.st_dev, status.st_ino))
    return used


def _bound() -> dict[str, tuple[Inode, list[str]]]:
    """The bound sockets with such a path: the file, and the socket numbers."""
    found: dict[str, tuple[Inode, list[str]]] = {}
    for line in _BINDINGS.read_text(errors="replace").splitlines() if _BINDINGS.exists() else ():
        *_, number, path = line.split(maxsplit=7)
        if _BOUND.fullmatch(path):
            with contextlib.suppress(OSError):
                status = Path(path).lstat()
                found.setdefault(path, ((status.st_dev, status.st_ino), []))[1].append(number)
    return found
