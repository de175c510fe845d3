"""ray.json of an attempt: the folder of its Ray's logs and sockets, which Ray leaves behind.

A folder belongs to a run if a process of the run is the head of its Ray and so writes `gcs_server.out` there. `inode`
and `device` distinguish it from a later folder with the same path.
"""

import contextlib
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from launcher.record.json import Record
from launcher.record.layout import RunDir

_HEAD = re.compile(r"(/.+/session_[^/]+)/logs/gcs_server\.(?:out|err)")
_DRIVER = re.compile(r"/.+/(session_[^/]+)/logs/python-core-driver-.+")


@dataclass(frozen=True, slots=True)
class RaySession(Record):
    """A local folder."""

    path: str
    device: int
    inode: int

    @classmethod
    def of(cls, pids: Iterable[int]) -> "RaySession | None":
        """The session with one of these processes as its head, found by their open files."""
        for pid in pids:
            for file in open_files(pid):
                with contextlib.suppress(OSError):
                    if found := _HEAD.fullmatch(file):
                        status = Path(found[1]).stat()
                        return cls(found[1], status.st_dev, status.st_ino)
        return None

    @property
    def left(self) -> bool:
        """Whether this folder still exists and belongs to this user."""
        try:
            status = Path(self.path).lstat()
        except OSError:
            return False
        return (status.st_dev, status.st_ino, status.st_uid) == (self.device, self.inode, os.getuid())


def joined_session(pids: Iterable[int]) -> str | None:
    """The session name of a driver among these processes; all nodes of a cluster share it."""
    files = (file for pid in pids for file in open_files(pid))
    return next((found[1] for file in files if (found := _DRIVER.fullmatch(file))), None)


def open_files(pid: int) -> Iterator[str]:
    """Open files of a process, as far as visible to this user: paths, `socket:[123]`."""
    with contextlib.suppress(OSError):
        for file in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                yield str(file.readlink())


def left_by(run: RunDir) -> list[RaySession]:
    """Ray folders left by a run's attempts."""
    sessions = (RaySession.read(run.attempt(number).ray) for number in run.attempt_numbers())
    return [each for each in sessions if each is not None and each.left]
