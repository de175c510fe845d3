"""Traces a process's file changes through seccomp notifications (Linux, x86-64, without root)."""

import ctypes
import errno
import fcntl
import os
import platform
import re
import select
import signal
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# Name: number on x86-64, argument with the descriptor (of a folder, if a path follows), argument with the path.
_TABLE = """
open 2 - 0, openat 257 0 1, creat 85 - 0, write 1 0 -, pwrite 18 0 -, writev 20 0 -, pwritev 296 0 -, sendfile 40 0 -,
copy_file_range 326 2 -, fallocate 285 0 -, fsync 74 0 -, fdatasync 75 0 -, truncate 76 - 0, ftruncate 77 0 -,
rename 82 - 1, renameat 264 2 3, renameat2 316 2 3, link 86 - 1, linkat 265 2 3, symlink 88 - 1, symlinkat 266 1 2,
unlink 87 - 0, unlinkat 263 0 1, rmdir 84 - 0, mkdir 83 - 0, mkdirat 258 0 1
"""
_CALLS = {
    int(number): (name, *(None if place == "-" else int(place) for place in places))
    for name, number, *places in re.findall(r"(\w+) (\d+) (\S) (\d|-)", _TABLE)
}
POSSIBLE = sys.platform == "linux" and platform.machine() == "x86_64"
_RECEIVE, _SEND, _CONTINUE = 0xC0502100, 0xC0182101, 1  # of linux/seccomp.h
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


@dataclass
class Call:
    """A system call that waits for its answer."""

    listener: int
    id: int
    pid: int
    child: int
    number: int
    path: Path
    arguments: tuple[int, ...]

    @property
    def name(self) -> str:
        return _CALLS[self.number][0]

    def answer(self, fault: str) -> None:
        """Lets it continue, fails it, or kills its process."""
        if fault == "half" and self.name == "write":
            self._half()
        if fault in ("half", "SIGKILL"):
            os.kill(self.child, signal.SIGKILL)
            return
        answer = struct.pack("Qqii", self.id, 0, -getattr(errno, fault) if fault else 0, 0 if fault else _CONTINUE)
        fcntl.ioctl(self.listener, _SEND, answer)

    def _half(self) -> None:
        descriptor, start, count = self.arguments[:3]
        about = dict(re.findall(r"(\w+):\t(\d+)", Path(f"/proc/{self.pid}/fdinfo/{descriptor}").read_text()))
        with Path(f"/proc/{self.pid}/fd/{descriptor}").open("r+b", 0) as file:
            appends = int(about["flags"], 8) & os.O_APPEND
            file.seek(*((0, os.SEEK_END) if appends else (int(about["pos"]),)))
            file.write(_memory(self.pid, start, count // 2))


def _memory(pid: int, start: int, count: int) -> bytes:
    with Path(f"/proc/{pid}/mem").open("rb", 0) as memory:
        memory.seek(start)
        return memory.read(count)


def listen() -> int:
    """Makes this thread and its children wait for an answer at each change of a file; returns the listener.

    Raises OSError if the kernel does not support it.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    steps = [(0x20, 0, 0, 0)]  # load the number of the call
    steps += [
        (0x15, len(_CALLS) - at, 0, number) for at, number in enumerate(_CALLS)
    ]  # go to the last line if it is one
    steps += [(0x06, 0, 0, 0x7FFF0000), (0x06, 0, 0, 0x7FC00000)]  # allow; notify
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(code)))
    libc.prctl(38, 1, 0, 0, 0)  # no new privileges, which allows filters without root
    if (listener := libc.syscall(317, 1, 8, program)) < 0:
        raise OSError(ctypes.get_errno(), "seccomp")
    return listener


def _receive(listener: int, child: int, root: Path) -> Call | None:
    request = bytearray(80)
    try:
        fcntl.ioctl(listener, _RECEIVE, request)
    except FileNotFoundError:  # the caller died meanwhile
        return None
    id, pid, _, number = struct.unpack_from("QIIi", request)
    return Call(listener, id, pid, child, number, root, struct.unpack_from("6Q", request, 32))


def release(listener: int) -> None:
    """Lets remaining processes of an ended, reaped one continue until they end."""
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    while not poll.poll()[0][1] & select.POLLHUP:
        if (call := _receive(listener, 0, Path())) is not None:
            call.answer("")
    os.close(listener)


def calls(listener: int, child: int, root: Path) -> Iterator[Call]:
    """A process's changes below a folder, until it ends. Each must be answered."""
    ended = os.pidfd_open(child)
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    poll.register(ended, select.POLLIN)
    while ended not in dict(poll.poll()):
        if (call := _receive(listener, child, root)) is None:
            continue
        pid = call.pid
        path = _path(call) if Path(f"/proc/{child}/task/{pid}").exists() else None  # else it is a child of the child
        if path is not None and path.is_relative_to(root):
            call.path = path
            yield call
        else:
            call.answer("")
    os.close(ended)


def _path(call: Call) -> Path | None:
    """The file that a call changes; None without one."""
    _, folder, place = _CALLS[call.number]
    if call.name in ("open", "openat") and not call.arguments[place + 1] & _WRITES:
        return None
    process = Path(f"/proc/{call.pid}")
    at = ctypes.c_int(call.arguments[folder]).value if folder is not None else -100  # AT_FDCWD
    try:
        base = (process / ("cwd" if at == -100 else f"fd/{at}")).readlink()
        if place is None:
            return base
        name = _memory(call.pid, call.arguments[place], 4096).split(b"\0")[0]
        return Path(os.path.normpath(base / os.fsdecode(name)))
    except OSError:
        return None
