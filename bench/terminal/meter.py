"""Measures a program in a pseudo terminal: its paints, output and cost."""

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import psutil

_ESCAPE = re.compile(rb"\x1b\[[0-9;:?<>=]*[a-zA-Z]")
# What a modern terminal answers; some programs wait for it before they paint.
_ANSWERS = {
    b"\x1b[c": b"\x1b[?62;22c",
    b"\x1b[6n": b"\x1b[1;1R",
    b"\x1b[?2026$p": b"\x1b[?2026;2$y",
    b"\x1b]11;?": b"\x1b]11;rgb:1212/1212/1212\x1b\\",
    b"\x1b]10;?": b"\x1b]10;rgb:d0d0/d0d0/d0d0\x1b\\",
}


@dataclass
class Window:
    """Rates in a time window: bytes written, the same through `ssh -C`, CPU in % of one core."""

    bytes_s: float
    zlib_s: float
    cpu: float


class Meter:
    """Runs a command on a terminal of `size` and reads all its output."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], size: tuple[int, int]) -> None:
        columns, rows = size
        self.seen = b""
        self._packets: list[bytes] = []
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._started = time.monotonic()
        self.process = subprocess.Popen(
            command,
            env=dict(env),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)
        self.root = self.process.pid  # of what is measured; behind tmux it is another one

    def read(self, seconds: float) -> bytes:
        """The output of some time. A program that ends is an error, because nothing would be measured."""
        found, deadline = b"", time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if not select.select([self._master], [], [], left)[0]:
                continue
            try:
                chunk = os.read(self._master, 1 << 16)
            except OSError:
                raise RuntimeError(f"the program ended: {found[-400:]!r}") from None
            for query, answer in _ANSWERS.items():
                if query in chunk:
                    os.write(self._master, answer)
            found += chunk
            self._packets.append(chunk)
        return found

    def until(self, mark: str, seconds: float = 30) -> float:
        """Seconds from the start until the text was painted."""
        while mark.encode() not in _ESCAPE.sub(b"", self.seen):
            if time.monotonic() > self._started + seconds:
                raise RuntimeError(f"{mark!r} never came: {_ESCAPE.sub(b'', self.seen)[-400:]!r}")
            self.seen += self.read(0.005)
        return time.monotonic() - self._started

    def settle(self, seconds: float) -> None:
        """Waits until nothing was written for 1.5 seconds, at most `seconds`."""
        deadline = time.monotonic() + seconds
        while self.read(1.5) and time.monotonic() < deadline:
            pass

    def window(self, seconds: float) -> Window:
        """Measures for some time."""
        self._packets = []
        before, started = _cpu(self.root), time.monotonic()
        written = len(self.read(seconds))
        took = time.monotonic() - started
        packer = zlib.compressobj(6)
        packed = sum(len(packer.compress(packet) + packer.flush(zlib.Z_SYNC_FLUSH)) for packet in self._packets)
        return Window(written / took, packed / took, 100 * (_cpu(self.root) - before) / took)

    def memory(self) -> float:
        """Resident memory of the program and its children in MB."""
        return sum(process.memory_info().rss for process in _tree(self.root)) / 1e6

    def answer(self, key: str, seconds: float = 5.0) -> float:
        """Seconds from a key to the first byte of output without other output, at most `seconds`."""
        while self.read(0.1):
            pass
        os.write(self._master, key.encode())
        started = time.monotonic()
        while not select.select([self._master], [], [], 0.001)[0] and time.monotonic() < started + seconds:
            pass
        return time.monotonic() - started

    def close(self) -> None:
        """Ends the program."""
        for each in _tree(self.process.pid):
            with contextlib.suppress(psutil.Error):
                each.kill()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self._master)


def _tree(pid: int) -> list[psutil.Process]:
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.Error:
        return []


def _cpu(pid: int) -> float:
    total = 0.0
    for each in _tree(pid):
        with contextlib.suppress(psutil.Error):
            times = each.cpu_times()
            total += times.user + times.system
    return total
