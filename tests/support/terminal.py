"""A program in a real pseudo terminal, read through a terminal emulator."""

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
from collections.abc import Callable, Mapping
from pathlib import Path

import pyte
from waiting import PATIENCE


def _own_the_terminal() -> None:
    """Makes stdin the controlling terminal, so that its hang-up sends SIGHUP."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Terminal:
    """Runs a command on a pty of `columns` x `rows`; `text()`: the visible text.

    `raw`: all output. Without `owned` the terminal belongs to no session: its hang-up sends no signal.
    """

    def __init__(
        self, argv: list[str], env: Mapping[str, str], columns: int = 80, rows: int = 24, *, owned: bool = True
    ) -> None:
        self.raw = b""
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        # pytest-xdist names a size, which would count more than that of the pty
        kept = {name: value for name, value in env.items() if name not in ("LINES", "COLUMNS")}
        self.process = subprocess.Popen(
            argv,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            cwd=Path.cwd(),
            env={**kept, "TERM": "xterm-256color", "COLORTERM": "truecolor"},
            preexec_fn=_own_the_terminal if owned else None,
        )
        os.close(slave)

    def pump(self, seconds: float = 0.2) -> None:
        """Reads the program's output for some time."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if select.select([self._master], [], [], left)[0]:
                try:
                    chunk = os.read(self._master, 1 << 16)
                except OSError:
                    return
                self.raw += chunk
                # pyte does not know the private modes of newer terminals (kitty keys, in-band resize)
                self._stream.feed(re.sub(rb"\x1b\[[<>=?][0-9;]*[u$][a-z]?|\x1b\[\?[0-9;]*\$p", b"", chunk))

    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self.screen.display)

    def wait_for(self, good: Callable[[str], bool]) -> str:
        """Waits until the screen meets a condition."""
        deadline = time.monotonic() + PATIENCE
        while not good(self.text()):
            assert time.monotonic() < deadline, f"the screen never came to it:\n{self.text()}"
            self.pump()
        return self.text()

    def send(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def hang_up(self) -> None:
        """Closes the terminal under the program, like a lost connection."""
        os.close(self._master)
        self.process.wait(PATIENCE)

    def close(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
