"""Reads a log that another program writes, while it grows and is truncated, rotated, synced or replaced."""

import codecs
import contextlib
import os
from collections.abc import Callable, Iterator
from io import FileIO
from pathlib import Path

from launcher.core.tail import utf16

_CHUNK = 1 << 20
_KEPT = 4096  # bytes at the start and at the end of the read part that identify a log


class Replaced(Exception):
    """Another log replaced the one at this path."""


class GrowingLog:
    """The new text of a log, as UTF-8; `copied` has the text read before.

    A file that contains the read text is the same log: rsync renames a copy at every sync. A truncated log is read from
    its beginning, and so is another file that `goes_on` with the steps; None: it has no step yet.
    """

    def __init__(self, path: Path, copied: Path, goes_on: Callable[[], bool | None]) -> None:
        self._path, self._goes_on = path, goes_on
        self._file: FileIO | None = None
        self._decoder: codecs.IncrementalDecoder | None = None
        self._at, self._head, self._last = 0, b"", b""
        if copied.exists():
            with copied.open("rb") as file:
                self._at = file.seek(0, os.SEEK_END)
                file.seek(max(0, self._at - _KEPT))
                self._last = file.read()

    def fresh(self) -> Iterator[bytes]:
        """The text added since the last call, in pieces. Raises Replaced."""
        with contextlib.suppress(OSError):  # a network disk may be away
            before, now = self._file, FileIO(self._path) if self._path.exists() else None
            same = before is not None and now is not None and os.path.sameopenfile(before.fileno(), now.fileno())
            if before is not None and not same:
                yield from self._rest(before)  # a moved file
            if now is None:
                return
            if not self._has_read(now):
                if before is None and (found := self._behind(self._last, now)) is not None:
                    yield found
                elif same or self._is_next():
                    self._begin(now)
                    yield b"\n"  # ends a truncated line
                else:
                    return
            self._file = now
            yield from self._rest(now)

    def _is_next(self) -> bool:
        if (goes_on := self._goes_on()) is False:
            raise Replaced
        return goes_on is True

    def _has_read(self, file: FileIO) -> bool:
        """Whether a file contains the bytes read before, as far as known."""
        places = ((self._head, 0), (self._last, self._at - len(self._last)))
        return all(os.pread(file.fileno(), len(part), at) == part for part, at in places)

    def _begin(self, file: FileIO) -> None:
        """Starts from the first data byte: a truncated log whose writer does not append begins with a hole."""
        self._at, self._head, self._last = 0, b"", b""
        with contextlib.suppress(OSError):  # an empty file
            self._at = os.lseek(file.fileno(), 0, os.SEEK_DATA)

    def _behind(self, copied: bytes, file: FileIO) -> bytes | None:
        """The text after the copied part, in a log that is UTF-16 or was truncated; None: not in this file."""
        before = self._at
        self._begin(file)
        seen = b""
        for text in self._rest(file):
            seen = seen[-_KEPT:] + text
            if (at := seen.find(copied)) >= 0:
                return seen[at + len(copied) :]
        self._at, self._head, self._last = before, b"", copied
        return None

    def _rest(self, file: FileIO) -> Iterator[bytes]:
        while raw := os.pread(file.fileno(), _CHUNK, self._at):
            if begins := not self._last:
                encoding = utf16(raw)
                self._decoder = codecs.getincrementaldecoder(encoding)("replace") if encoding else None
            self._at += len(raw)
            self._last = (self._last + raw)[-_KEPT:]
            if len(self._head) < _KEPT:
                self._head = os.pread(file.fileno(), min(self._at, _KEPT), 0)
            text = self._decoder.decode(raw).encode() if self._decoder else raw
            if text := text.lstrip(b"\0") if begins else text:
                yield text
