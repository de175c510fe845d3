"""Follows files that grow."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from launcher.core import gap


class Tail:
    """Reads what was added to a file since the last read.

    A file that does not exist yet, or cannot be read now (a network disk), has nothing new. A file that shrank was
    restarted (veRL's file logger truncates it at every start): reading continues from its beginning, and
    `restarts` counts it. A gap is skipped; `passed` counts its bytes.
    """

    def __init__(self, path: Path, offset: int = 0) -> None:
        self.path = path
        self.offset = offset
        self.restarts = 0
        self.passed = 0

    def read(self, limit: int = 1 << 20) -> bytes:
        """The next bytes, at most `limit`; empty when there is nothing new."""
        try:
            with self.path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                if size < self.offset:
                    self.offset, self.restarts = 0, self.restarts + 1
                if size == self.offset:
                    return b""
                missing = gap.find(file.fileno())
                if self.offset in missing:
                    self.passed += missing.stop - self.offset
                    self.offset = missing.stop
                file.seek(self.offset)
                chunk = file.read(limit)
        except OSError:
            return b""
        self.offset += len(chunk)
        return chunk


class _Lines:
    """Splits pieces into lines; the parts of a line are joined once, however long it is."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def add(self, piece: bytes) -> list[bytes]:
        """The lines that end in this piece."""
        self._parts.append(piece)
        if b"\n" not in piece:
            return []
        *lines, last = b"".join(self._parts).split(b"\n")
        self._parts = [last]
        return lines


class LineTail:
    """Reads complete lines that were added to a file; a half line at its end waits for its newline."""

    def __init__(self, path: Path, offset: int = 0) -> None:
        self._tail = Tail(path, offset)
        self._lines = _Lines()

    @property
    def restarts(self) -> int:
        return self._tail.restarts

    def read(self, limit: int = 1 << 20) -> list[bytes]:
        """The next complete lines without their newlines, from about `limit` bytes."""
        restarts = self._tail.restarts
        chunk = self._tail.read(limit)
        if self._tail.restarts != restarts:
            self._lines = _Lines()
        return self._lines.add(chunk)


def lines_of(read: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of pieces of a file, without their newlines."""
    lines = _Lines()
    for chunk in read:
        yield from lines.add(chunk)
    yield from filter(None, lines.add(b"\n"))
