r"""A console log as clean lines: bytes in, cut anywhere; lines with their exact place in the file out.

What Ray, vLLM and tqdm do to a line: `\x1b[36m(Actor pid=1, ip=10.0.0.2)\x1b[0m text`, several such prefixes
one after the other, progress bars redrawn with `\r`. Prefixes are found in the bytes, so that only the rest of
a line has to be decoded and cleaned, and only when somebody wants it.
"""

import re
from typing import NamedTuple

from launcher.text import clean

LONGEST = 1 << 18  # bytes kept of one line; long step lines have about 10 kB

# Logs pasted from a browser lose the escape character and keep the rest of a colour code.
_COLOURS = rb"(?:\x1b?\[[0-9;]*m)*"
_NAME = rb"(?:([^()\s][^()\n]{0,99}?) )?pid=([0-9]{1,10})|(raylet|autoscaler)(?: \+[^()\s]{1,20})?"
PREFIX = re.compile(
    rb"(?:%b\((?:%b)(?:, ip=[^()\s]{1,60})?\)%b ?)*(?:\x1b\[[0-9;]*m)*" % (_COLOURS, _NAME, _COLOURS)
)


class Line(NamedTuple):
    """One line of a console log.

    `number` counts newlines from 1, `offset` is the byte where the line starts. `source` is the Ray actor or
    process that wrote it ("TaskRunnerV1"; of nested ones the innermost, "EngineCore"), "worker" when Ray did
    not know its name yet, "" for the driver; `pid` is 0 when unknown. `text` has neither prefix nor escapes.

    The parts of a line between carriage returns are lines of their own with the same number: on a terminal
    the later one overwrites the earlier.
    """

    number: int
    offset: int
    source: str
    text: str
    pid: int = 0


class Piece(NamedTuple):
    """A line, or its part up to a carriage return, as bytes: at most LONGEST of them, without its end."""

    number: int
    offset: int
    raw: bytes


class PieceSplitter:
    r"""Cuts bytes into pieces at `\n` and `\r`; how the bytes are fed makes no difference."""

    def __init__(self) -> None:
        self._number = 1
        self._offset = 0  # where the piece at the end of the last feed starts
        self._parts: list[bytes] = []  # its bytes
        self._room = LONGEST
        self._dropped = 0  # those beyond LONGEST, which are only counted
        self._returned = False  # a carriage return stands before it in the same line

    def feed(self, data: bytes) -> list[Piece]:
        """The pieces that `data` completes."""
        end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        if not end:
            self._keep(data)
            return []
        found: list[Piece] = []
        number, offset, dropped = self._number, self._offset, self._dropped
        lines = (b"".join(self._parts) + data[:end]).split(b"\n")
        last = len(lines) - 1
        for index, line in enumerate(lines):
            *parts, rest = line.split(b"\r")
            for part in parts:
                if part:
                    found.append(Piece(number, offset, part[:LONGEST]))
                offset += len(part) + dropped + 1
                dropped = 0
            self._returned = self._returned or bool(parts)
            if index == last:  # after the last newline, up to the last carriage return
                break
            if rest or not self._returned:
                found.append(Piece(number, offset, rest[:LONGEST]))
            offset += len(rest) + dropped + 1
            number += 1
            dropped = 0
            self._returned = False
        self._number, self._offset = number, offset
        self._parts, self._room, self._dropped = [], LONGEST, 0
        self._keep(data[end:])
        return found

    def close(self) -> Piece | None:
        """What the end of the file left without a newline."""
        raw = b"".join(self._parts)
        self._parts = []
        return Piece(self._number, self._offset, raw) if raw else None

    def _keep(self, data: bytes) -> None:
        kept = data[: self._room]
        if kept:
            self._parts.append(kept)
        self._room -= len(kept)
        self._dropped += len(data) - len(kept)


class LineSplitter:
    """A log as clean lines: `feed` returns those that are complete, `close` a last one without a newline."""

    def __init__(self) -> None:
        self._pieces = PieceSplitter()
        self._cleaner = Cleaner()

    def feed(self, data: bytes) -> list[Line]:
        return [self._cleaner.line(piece) for piece in self._pieces.feed(data)]

    def close(self) -> list[Line]:
        piece = self._pieces.close()
        return [self._cleaner.line(piece)] if piece else []


class Cleaner:
    """Makes lines of pieces. A part after a carriage return has the source of the line's first part."""

    def __init__(self) -> None:
        self._number = 0
        self._source: tuple[str, int] = ("", 0)

    def line(self, piece: Piece) -> Line:
        source, pid, start = split_prefix(piece.raw)
        if source or piece.number != self._number:
            self._number, self._source = piece.number, (source, pid)
        else:
            source, pid = self._source
        text = clean(piece.raw[start:].decode(errors="replace"))
        return Line(piece.number, piece.offset, source, text, pid)


def split_prefix(raw: bytes) -> tuple[str, int, int]:
    """Source and pid of a line, and the index where its text starts."""
    match = PREFIX.match(raw)
    if match is None or not match.end():
        return "", 0, 0
    name, pid, daemon = match.groups()
    start = match.end()
    if daemon:
        return daemon.decode(), 0, start
    if pid is None:  # only colours
        return "", 0, start
    return name.decode(errors="replace") if name else "worker", int(pid), start
