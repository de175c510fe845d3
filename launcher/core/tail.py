"""Reads bytes and lines of logs: whole files and growing ones."""

import codecs
import gzip
import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from launcher.core import gap
from launcher.core.errors import of_file
from launcher.core.progress import SILENT, Meter

_CHUNK = 1 << 18


class Tail:
    """Reads the bytes added to a file since the last read.

    A missing or temporarily unreadable file (a network disk) has nothing new. A file that shrank was restarted (veRL's
    file logger truncates it at every start): reading continues from its beginning, and `restarts` counts it. A gap is
    skipped; `passed` counts its bytes.
    """

    def __init__(self, path: Path, offset: int = 0) -> None:
        self.path = path
        self.offset = offset
        self.restarts = 0
        self.passed = 0

    def read(self, limit: int = 1 << 20) -> bytes:
        """The next bytes, at most `limit`; empty without new ones."""
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
    """Splits pieces into lines; the parts of a line are joined once, whatever its length."""

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
    """Reads complete lines added to a file; an incomplete one waits for its newline."""

    def __init__(self, path: Path, offset: int = 0) -> None:
        self._tail = Tail(path, offset)
        self._lines = _Lines()

    @property
    def restarts(self) -> int:
        return self._tail.restarts

    def read(self, limit: int = 1 << 20) -> list[bytes]:
        """The next complete lines without newlines, from about `limit` bytes."""
        restarts = self._tail.restarts
        chunk = self._tail.read(limit)
        if self._tail.restarts != restarts:
            self._lines = _Lines()
        return self._lines.add(chunk)


def lines_of(read: Iterable[bytes]) -> Iterator[bytes]:
    """The lines in pieces of a file, without newlines."""
    lines = _Lines()
    for chunk in read:
        yield from lines.add(chunk)
    yield from filter(None, lines.add(b"\n"))


def chunks(path: Path, meter: Meter = SILENT) -> Iterator[bytes]:
    """Pieces of a log as UTF-8 (PowerShell writes UTF-16), without byte order mark and gap; none of a missing file."""
    try:
        with path.open("rb") as raw:
            packed = raw.peek(2).startswith(b"\x1f\x8b")  # the name does not show compression
            file: IO[bytes] | gzip.GzipFile = gzip.GzipFile(fileobj=raw) if packed else raw
            first = file.read(_CHUNK)
            if encoding := utf16(first):
                decoder = codecs.getincrementaldecoder(encoding)("replace")
                while first:
                    yield decoder.decode(first).encode()
                    first = file.read(_CHUNK)
                return
            yield first.removeprefix(codecs.BOM_UTF8)
            meter.add(len(first))
            missing = range(0) if packed else gap.find(raw.fileno())
            while chunk := file.read(_CHUNK):
                yield chunk
                meter.add(len(chunk))
                if file.tell() in missing:
                    file.seek(missing.stop)
    except FileNotFoundError:
        return
    except (OSError, EOFError, zlib.error) as error:
        raise of_file(f"cannot read {path}", error) from None


def last_text(path: Path, size: int) -> str:
    """The last bytes of a file, at most `size`, as text. Raises OSError."""
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - size))
        return file.read().decode(errors="replace")


def utf16(first: bytes) -> str | None:
    """The encoding of a log with this beginning, if it is UTF-16: by its mark, or by every other byte of Latin text."""
    if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    sample = first[:200]
    if b"\0" in sample:
        for encoding, low in (("utf-16-le", 1), ("utf-16-be", 0)):
            if sample[low::2].count(0) > 0.4 * len(sample) and not sample[1 - low :: 2].count(0):
                return encoding
    return None


def records(path: Path, meter: Meter = SILENT) -> Iterator[bytes]:
    """The raw lines of a log, such as a metrics.jsonl; empty for a missing file."""
    return lines_of(chunks(path, meter))
