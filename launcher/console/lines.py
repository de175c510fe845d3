r"""Splits a console log's bytes, in any chunks, into clean lines with their exact place in the file.

Ray, vLLM and tqdm add to a line: `\x1b[36m(Actor pid=1, ip=10.0.0.2)\x1b[0m text`, several such prefixes in a row,
progress bars redrawn with `\r`. mpirun and torchrun put the rank before all of them. Prefixes are matched as bytes: the
text is decoded and cleaned only on demand. A bar does not end its line, so that later output follows it there: both
count as separate lines.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from launcher.core.secrets import Redactor, redact
from launcher.core.text import clean

_PRINTABLE = bytes(range(0x20, 0x7F))  # nothing to clean
_FEW = 64  # bytes that are not ASCII, of which a line may have more than others of its log
LONGEST = 1 << 18  # bytes kept of one line; long step lines have about 10 kB

# Logs pasted from a browser lose the escape character and keep the rest of a color code.
_COLORS = rb"(?:\x1b?\[[0-9;]*m)*"
_NAME = (
    rb"(?:([^()\s=][^()=\n]{0,99})(?: rank=[0-9]{1,6})? )?pid=([0-9]{1,10})|(raylet|autoscaler)(?: \+[^()\s]{1,20})?"
)
# What comes before a line of any writer: the echo of Ctrl-C, the time of a log collector (Docker, Kubernetes).
BEFORE = (
    rb"(?:\^[C\\])*(?:[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}(?:\.[0-9]{1,9})?(?:Z|[+-][0-9]{2}:?[0-9]{2}) "
    rb"(?:std(?:out|err) [FP] )?)?"
)
# `mpirun --tag-output` (`[1,0]<stdout>:`), Open MPI 5 (`[prterun-host-7@1,0]<stderr>:`), torchrun (`[default0]:`,
# `[rank0]: `).
_RANK = (
    rb"(?:\[(?:(?:[\w.-]{1,60}@)?[0-9]{1,10},(?P<mpi>[0-9]{1,6})\]<std(?:out|err)>"
    rb"|(?:default|rank|trainer|worker)(?P<rank>[0-9]{1,6})\]): ?){0,2}"
)
PREFIX = re.compile(
    rb"%b%b(?:%b\((?:%b)(?:, ip=[^()\s]{1,60})?\)%b ?)*(?:\x1b\[[0-9;]*m)*" % (BEFORE, _RANK, _COLORS, _NAME, _COLORS)
)

# A bar of tqdm, `desc:  40%|████    | 24/60 [00:04<00:06, 5.31it/s, loss=0.3]` or `12it [00:03, 3.4it/s]`, at the start
# of a line; a bar inside a sentence or string does not count.
_BAR_REST = rb"\|[^|\n\r]{0,400}\| *[0-9.kMGT?]{1,12}/[0-9.kMGT?]{1,12}[A-Za-z]{0,3} \[[^\]\n\r]{0,300}\]"
_BAR_OPEN = rb"it \[[0-9:]{5,9}, [^\]\n\r]{0,300}\]"
_BAR_HINTS = (b"%|", b"it [")
_BLANK = rb"(?:\x1b\[[0-9;?]*[A-Za-z]|[ \t](?! ?File \"))*"  # tqdm adds it after a shortened bar
_BAR = re.compile(
    rb"%b(?:[^'\"`|%%\n\r]{0,100}?: ?)? {0,3}(?:[0-9]{1,3}%%%b|[0-9.]{1,12}[kMGT]?%b)%b"
    % (PREFIX.pattern, _BAR_REST, _BAR_OPEN, _BLANK)
)
_LAST_BAR = re.compile(rb"(?:  [0-9]| [0-9]{2}|100)%%%b%b\Z" % (_BAR_REST, _BLANK))
BEHIND_BARS = tuple(re.compile(rb"%b%b(?=\S)" % (bar, _BLANK)) for bar in (b"%" + _BAR_REST, _BAR_OPEN))
"""Matches end where text follows a progress bar."""


class Writer(NamedTuple):
    """The writer of a line, as in `Line`. Ranks of mpirun or torchrun are all drivers; the pid of rank n is -1 - n."""

    source: str
    pid: int


class Line(NamedTuple):
    """One line of a console log.

    `number` counts newlines from 1; `offset` is the byte where the line starts. `source`: the Ray actor or process that
    wrote it ("TaskRunnerV1"; for nested ones the innermost, "EngineCore"), "worker" before Ray has its name, "" for the
    driver. `pid` is 0 if unknown. `text` has neither prefix nor escapes.

    Parts of a line between carriage returns are separate lines with the same number: on a terminal the later one
    overwrites the earlier. So are progress bars, and the text next to them.
    """

    number: int
    offset: int
    source: str
    text: str
    pid: int = 0


# A line, or its part up to a carriage return or next to a progress bar: number, offset, bytes without the end (at most
# LONGEST), and for a later part the prefix of the line. A bare tuple, because there are many.
Piece = tuple[int, int, bytes, bytes]


class PieceSplitter:
    r"""Cuts bytes into pieces at `
    `, `\r` and progress bars, for any chunks.
    """

    def __init__(self) -> None:
        self._number = 1
        self._offset = 0  # start of the piece at the end of the last feed
        self._parts: list[bytes] = []  # bytes of the piece
        self._room = LONGEST
        self._dropped = 0  # bytes beyond LONGEST, which are only counted
        self._lead: bytes | None = None  # None in the first part of a line

    def feed(self, data: bytes) -> list[Piece]:
        """The pieces completed by `data`."""
        end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        if not end:
            self._keep(data)
            return []
        pieces: list[Piece] = []
        number, offset, dropped = self._number, self._offset, self._dropped
        *lines, tail = (b"".join(self._parts) + data[:end]).split(b"\n")
        for line in lines:
            if self._lead is not None or b"\r" in line:
                self._returns(line, number, offset, dropped, pieces)
                self._lead = None
            else:
                pieces += _pieces(number, offset, line[:LONGEST], b"")
            offset += len(line) + dropped + 1
            number += 1
            dropped = 0
        if tail:  # text after the last newline, up to the last carriage return
            self._returns(tail[:-1], number, offset, dropped, pieces)
            offset += len(tail) + dropped
        self._number, self._offset = number, offset
        self._parts, self._room, self._dropped = [], LONGEST, 0
        self._keep(data[end:])
        return pieces

    def split(self, data: bytes) -> tuple[list[Piece], "Block", list[Piece]]:
        """As `feed`, but leaves whole lines uncut: the pieces before them, the lines, the pieces after them."""
        first = 0
        if self._parts or self._dropped or self._lead is not None:
            first = data.find(b"\n") + 1 or len(data)
        before = self.feed(data[:first]) if first else []
        last = data.rfind(b"\n", first) + 1 or first
        block = Block(data[first:last], self._number, self._offset)
        self._number += block.data.count(b"\n")
        self._offset += len(block.data)
        return before, block, self.feed(data[last:])

    def skip(self, data: bytes) -> None:
        """Counts lines without reading them. A line with an earlier beginning is lost."""
        self._number += data.count(b"\n")
        self._offset += sum(map(len, self._parts)) + self._dropped + len(data)
        self._parts, self._room, self._dropped, self._lead = [], LONGEST, 0, None

    def _returns(self, line: bytes, number: int, offset: int, dropped: int, pieces: list[Piece]) -> None:
        """Adds the nonempty parts of a line with carriage returns."""
        for part in line.split(b"\r"):
            if part:
                pieces += _pieces(number, offset, part[:LONGEST], self._lead or b"")
            if self._lead is None:
                self._lead = prefix_of(part)
            offset += len(part) + dropped + 1
            dropped = 0

    def close(self) -> list[Piece]:
        """The last pieces of a file that does not end in a newline."""
        raw = b"".join(self._parts)
        self._parts = []
        return _pieces(self._number, self._offset, raw, self._lead or b"") if raw else []

    def _keep(self, data: bytes) -> None:
        kept = data[: self._room]
        if kept:
            self._parts.append(kept)
        self._room -= len(kept)
        self._dropped += len(data) - len(kept)


class Block:
    """Whole lines of a log for taking single lines. `at`: start of the next one in `data`."""

    def __init__(self, data: bytes, number: int, offset: int) -> None:
        self.data, self.at = data, 0
        self._number, self._offset = number, offset

    def go_to(self, place: int) -> None:
        """Moves to the line that contains the byte `place`."""
        start = self.data.rfind(b"\n", self.at, place) + 1 or self.at
        self._number += self.data.count(b"\n", self.at, start)
        self.at = start

    def take_to(self, end: int) -> Piece:
        """The lines up to the byte `end` as one piece."""
        piece = self._number, self._offset + self.at, self.data[self.at : end - 1], b""
        self._number += self.data.count(b"\n", self.at, end)
        self.at = end
        return piece

    def take(self) -> list[Piece]:
        """The pieces of the next line."""
        start, number, lead = self.at, self._number, b""
        end = self.data.index(b"\n", start)
        line, offset = self.data[start:end], self._offset + start
        self.at, self._number = end + 1, number + 1
        if b"\r" not in line:
            return _pieces(number, offset, line[:LONGEST], b"")
        pieces: list[Piece] = []
        for index, part in enumerate(line.split(b"\r")):
            if part:
                pieces += _pieces(number, offset, part[:LONGEST], lead)
            lead = lead if index else prefix_of(part)
            offset += len(part) + 1
        return pieces


class LineSplitter:
    """Splits a log into clean lines: `feed` returns complete lines, `close` the last one without a newline."""

    def __init__(self) -> None:
        self._pieces, self._redact = PieceSplitter(), Redactor()

    def feed(self, data: bytes) -> list[Line]:
        return [clean_line(piece, self._redact) for piece in self._pieces.feed(data)]

    def close(self) -> list[Line]:
        return [clean_line(piece, self._redact) for piece in self._pieces.close()]


def _pieces(number: int, offset: int, raw: bytes, lead: bytes) -> list[Piece]:
    """A piece; around progress bars, the bars and the texts between them."""
    if _BAR_HINTS[0] not in raw and _BAR_HINTS[1] not in raw:
        return [(number, offset, raw, lead)]
    cuts = [0]
    while (bar := _BAR.match(raw, cuts[-1])) is not None:
        cuts.append(bar.end())
    if (last := _LAST_BAR.search(raw, cuts[-1])) is not None:
        cuts.append(last.start())
    lead, ends = lead or prefix_of(raw), [*cuts[1:], len(raw)]
    return [(number, offset + at, raw[at:end], lead) for at, end in zip(cuts, ends, strict=True) if at < end]


def is_bar(raw: bytes) -> bool:
    """Whether a piece is a progress bar."""
    return (_BAR_HINTS[0] in raw or _BAR_HINTS[1] in raw) and _BAR.fullmatch(raw) is not None


def clean_line(piece: Piece, hide: Callable[[str], str] = redact) -> Line:
    """The line of a piece, without escapes and the secrets that `hide` hides."""
    number, offset, raw, lead = piece
    prefix = PREFIX.match(raw)
    assert prefix is not None  # the pattern also matches empty text
    source, pid = writer_of(prefix[0], lead)
    return Line(number, offset, source, hide(clean_text(raw, prefix.end())), pid)


def prefix_of(raw: bytes) -> bytes:
    """The prefix of Ray, mpirun or torchrun before a line."""
    match = PREFIX.match(raw)
    return match[0] if match else b""


def clean_text(raw: bytes, start: int) -> str:
    """The text of a line from a byte on, without escapes."""
    raw = raw[start:]
    text = raw.decode(errors="replace")
    others = raw.translate(None, _PRINTABLE)
    return clean(text) if others and (len(others) > _FEW or not _harmless(others)) else text


@lru_cache(maxsize=1024)
def _harmless(others: bytes) -> bool:
    """Whether these non-ASCII characters are allowed; cached, as most lines have the same ones."""
    text = others.decode(errors="replace")
    return clean(text) == text


@lru_cache(maxsize=4096)
def writer_of(prefix: bytes, lead: bytes = b"") -> Writer:
    """The writer of a line, from its prefix or from `lead`, the prefix of the whole line."""
    match = PREFIX.fullmatch(prefix)
    mpi, rank, name, pid, daemon = match.groups() if match else (None,) * 5
    if daemon:
        return Writer(daemon.decode(), 0)
    if pid is None:  # only colors, or a rank
        rank = rank or mpi
        return Writer("", -1 - int(rank)) if rank else writer_of(lead) if lead else Writer("", 0)
    return Writer(name.decode(errors="replace") if name else "worker", int(pid))
