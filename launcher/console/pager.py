"""Reads any line of a console log of any size; memory holds one count per 64 KiB block.

A line is the text between two newlines, identified by its first byte, so that the end of a gigabyte log appears at
once. Line numbers come from the counts, which another thread may still be computing.
"""

import os
import string
import threading
import weakref
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from launcher.console.lines import LONGEST, clean_line, prefix_of
from launcher.core import gap
from launcher.core.secrets import Redactor, redact

BLOCK = 1 << 16
_BLOCKS_AT_ONCE = 16
_HALF = LONGEST // 2
_BUDGET = 1 << 23  # bytes that are read for one page
_KEY = 1 << 14  # bytes of the longest private key
_WORD = 12  # letters at the end of a line of one
_BODY = string.ascii_letters.encode() + b"0123456789+/="


class RawLine(NamedTuple):
    """A raw line of the file: from byte `offset` to `end`, including its newline.

    `raw` has no newline and at most LONGEST bytes: the first ones, or the first and last ones of a line redrawn with
    carriage returns.
    """

    offset: int
    end: int
    raw: bytes
    in_key: bool = False
    """Whether the line may belong to a private key that began before it."""


class LogEntry(NamedTuple):
    """One line, or consecutive lines that are equal or `folded`, for display: bytes `offset` to `end` of the file."""

    offset: int
    end: int
    source: str
    text: str
    repeats: int = 1
    folded: bool = False

    @property
    def shown(self) -> str:
        return f"({self.source}) {self.text}" if self.source else self.text


class Page(NamedTuple):
    """Entries in log order. `reached`: last searched byte."""

    entries: list[LogEntry]
    reached: int


Keep = Callable[[bytes], bool]
Fold = Callable[[LogEntry], bool]


class LogPager:
    """A growing log for several threads; `look` updates its size. Raises OSError. Its last reference closes it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        weakref.finalize(self, os.close, self._fd)
        self._before = array("Q", [0])  # newlines before each block
        self._counting = threading.Lock()
        self.size = 0
        self.gap = range(0)  # bytes without a newline, which are slow to read
        self._keyless = range(0)  # bytes in which no private key begins
        self.look()

    def look(self) -> bool:
        """Whether the file's size changed. A file that shrank, or whose gap grew, is recounted."""
        size, before, missing = os.fstat(self._fd).st_size, self.size, gap.find(self._fd)
        if size < before or missing != self.gap:
            self._before = array("Q", [0])
        self.size, self.gap = size, missing
        return size != before

    def read(self, offset: int, size: int) -> bytes:
        """Bytes of the file, up to the known size."""
        return os.pread(self._fd, max(min(size, self.size - offset), 0), offset)

    def count(self) -> None:
        """Counts the lines added since the last call."""
        with self._counting:
            counts = self._before
            while len(counts) * BLOCK <= self.size:
                begin = (len(counts) - 1) * BLOCK
                if begin in self.gap and (inside := (self.gap.stop - begin) // BLOCK):
                    counts.extend([counts[-1]] * inside)
                    continue
                data = self.read(begin, BLOCK * _BLOCKS_AT_ONCE)
                if len(data) < BLOCK:
                    return
                for start in range(0, len(data) - BLOCK + 1, BLOCK):
                    counts.append(counts[-1] + data.count(b"\n", start, start + BLOCK))

    def number_at(self, offset: int) -> int | None:
        """The line number of a byte, from 1; None until counted."""
        block = offset // BLOCK
        if block >= len(self._before):
            return None
        return self._before[block] + self.read(block * BLOCK, offset - block * BLOCK).count(b"\n") + 1

    def offset_of(self, number: int) -> int | None:
        """The start of a line; None beyond the last line, or until counted."""
        newlines = number - 1
        if newlines <= 0:
            return 0 if newlines == 0 and self.size else None
        block = bisect_left(self._before, newlines) - 1
        data, at = self.read(block * BLOCK, BLOCK), -1
        for _ in range(newlines - self._before[block]):
            at = data.find(b"\n", at + 1)
            if at < 0:
                return None
        offset = block * BLOCK + at + 1
        return offset if offset < self.size else None

    def start_of(self, offset: int) -> int:
        """The start of the line that contains a byte."""
        end = min(max(offset, 0), self.size)
        while end > 0:
            if end - 1 in self.gap:
                end = self.gap.start
            start = max(end - BLOCK, 0)
            newline = self.read(start, end - start).rfind(b"\n")
            if newline >= 0:
                return start + newline + 1
            end = start
        return 0

    def forward(self, start: int) -> Iterator[RawLine]:
        """The line at `start` and the following ones; the last one may lack its newline."""
        at, head, length = start, b"", 0  # position, beginning and length of the incomplete line
        while block := self.read(at, BLOCK):
            at += len(block)
            *lines, rest = block.split(b"\n")
            for line in lines:
                end = start + length + len(line) + 1
                yield self._line(start, end, head + line)
                start, head, length = end, b"", 0
            head, length = (head + rest)[:LONGEST], length + len(rest)
            if at in self.gap:
                length, at = length + self.gap.stop - at, self.gap.stop
        if length:
            yield self._line(start, start + length, head)

    def backward(self, end: int) -> Iterator[RawLine]:
        """The line ending at `end`, then earlier ones."""
        at, rest, length = end, b"", 0  # the part of the line before `end` that is read
        newline = 0  # bytes of its newline
        while at > 0:
            if at - 1 in self.gap:
                length, at = length + at - self.gap.start, self.gap.start
            size = min(BLOCK, at)
            at -= size
            head, *lines = self.read(at, size).split(b"\n")
            for line in reversed(lines):
                start = end - newline - length - len(line)
                if start < end:
                    yield self._line(start, end, line + rest)
                end, newline, rest, length = start, 1, b"", 0
            rest, length = (head + rest)[:LONGEST], length + len(head)
        if end > 0:
            yield self._line(0, end, rest)

    def _line(self, start: int, end: int, begin: bytes) -> RawLine:
        """The line with the bytes `begin` first: all of it, or its kept part."""
        if end - start > LONGEST + 1:  # a terminal shows the last redraw of a progress bar
            _, redrawn, last = self.read(end - _HALF, _HALF).removesuffix(b"\n").partition(b"\r")
            if redrawn:
                begin = begin[:_HALF] + redrawn + last
        body = len(begin) >= _WORD and not begin[-_WORD:].translate(None, _BODY)
        return RawLine(start, end, begin[:LONGEST], body and self._in_key(start))

    def _in_key(self, start: int) -> bool:
        """Whether a private key began before a line and has not ended."""
        if start - _KEY in self._keyless and start in self._keyless:
            return False
        first = max(start - _KEY, 0)
        data = self.read(first, _KEY + (BLOCK << 4))
        if b"PRIVATE KEY" not in data:
            self._keyless = range(first if first else -_KEY, first + len(data) - BLOCK)
            return False
        before = data[: start - first]
        return before.rfind(b"-----BEGIN ", 0, max(before.rfind(b"PRIVATE KEY"), 0)) > before.rfind(b"-----END ")

    def page(self, start: int, rows: int, keep: Keep | None = None, fold: Fold | None = None) -> Page:
        """Up to `rows` entries after `start`, from about 8 MiB.

        Only lines that `keep` accepts; those that `fold` accepts are one entry where they follow each other.
        """
        return _collect(self.forward(start), start, rows, keep, fold)

    def page_before(self, end: int, rows: int, keep: Keep | None = None, fold: Fold | None = None) -> Page:
        """Up to `rows` entries before `end`."""
        page = _collect(self.backward(end), end, rows, keep, fold)
        return Page(page.entries[::-1], page.reached)


def shown(line: RawLine, *, redacted: bool = True) -> LogEntry:
    r"""A line as on a terminal: without escapes and without text overwritten after `\r`.

    With `redacted` False, for output that hides secrets itself and has all lines of a key that began in view.
    """
    hide = Redactor(in_key=True) if line.in_key else redact if redacted else str
    if b"\r" not in line.raw:
        source, text = clean_line((0, 0, line.raw, b""), hide)[2:4]
        return LogEntry(line.offset, line.end, source, text)
    first, *others = line.raw.split(b"\r")
    last = next(filter(None, reversed(others)), first)
    source, text = clean_line((0, 0, last, prefix_of(first)), hide)[2:4]
    return LogEntry(line.offset, line.end, source, text)


def _collect(lines: Iterator[RawLine], reached: int, rows: int, keep: Keep | None, fold: Fold | None) -> Page:
    """Joins equal and folded lines. Reads one line more than the rows, as it may join the last one."""
    entries: list[LogEntry] = []
    begun = reached
    for line in lines:
        if abs(reached - begun) > _BUDGET:
            break
        if keep is None or keep(line.raw):
            entry = shown(line)
            entry = entry._replace(folded=fold is not None and fold(entry))
            last = entries[-1] if entries else None
            alike = last is not None and last.source == entry.source
            if last is not None and alike and (last.text == entry.text or (last.folded and entry.folded)):
                offset, end = min(last.offset, line.offset), max(last.end, line.end)
                entries[-1] = last._replace(offset=offset, end=end, repeats=last.repeats + 1)
            elif len(entries) >= rows:
                break
            else:
                entries.append(entry)
        reached = line.end if line.offset >= begun else line.offset
    return Page(entries, reached)
