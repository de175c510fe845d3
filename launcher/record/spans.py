"""Spans: the work of an attempt's processes over time, one line each in the files of its folder `spans`.

`ppo_tui_inside.plugin.spans` writes one file per process, with the older one next to it.
"""

import contextlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from launcher.core.tail import LineTail
from launcher.record.json import RARE, Record
from launcher.record.layout import AttemptDir

TRAINER = "trainer"  # the trainer's lane
STEP = "step"  # the trainer's timer of a step
_NEWEST = 1 << 20  # bytes of each file that are read at first: some steps
_RUNNING = 1 << 16  # bytes with the begin of the timer that runs


@dataclass(frozen=True, slots=True)
class Span(Record):
    """Work of one lane (`trainer`, `rank_0`, `replica_0`, `process_4711`) in unix seconds; open without `end`.

    Only trainer spans have `step`. For micro-batches, `count` is their number, and `parts` are tokens and seconds of
    the first ones.
    """

    name: str
    lane: str
    start: float
    end: float | None = None
    step: int | None = field(default=None, metadata=RARE)
    count: int = field(default=0, metadata=RARE)
    parts: tuple[tuple[float, ...], ...] = field(default=(), metadata=RARE)

    @classmethod
    def from_line(cls, line: bytes) -> "Span | None":
        """The span of a line; None if damaged."""
        try:
            return cls.from_json(orjson.loads(line))
        except ValueError:
            return None


class SpanTail:
    """Follows the spans of one attempt, from the first (`whole`) or the newest one on."""

    def __init__(self, attempt: AttemptDir, *, whole: bool = False) -> None:
        self.folder, self.whole = attempt.spans, whole
        self._files: dict[Path, LineTail] = {}

    @property
    def recorded(self) -> bool:
        """Whether the attempt has spans."""
        return bool(self._files)

    def read(self) -> Iterator[Span]:
        """The new spans, file by file."""
        for path in self._found():
            tail = self._files.get(path)
            if tail is None:
                begin = 0 if self.whole else max(0, _size(path) - _NEWEST)
                tail = self._files[path] = LineTail(path, begin)
            while lines := tail.read():
                for line in lines:
                    if (span := Span.from_line(line)) is not None:
                        yield span

    def _found(self) -> list[Path]:
        """The files, oldest first; older ones only if all spans are read."""
        try:
            paths = sorted(self.folder.iterdir(), key=lambda path: (path.suffix != ".old", path.name))
        except OSError:
            return []
        return [path for path in paths if path.suffix == ".jsonl" or (self.whole and path.suffix == ".old")]


class TimerTail:
    """Follows the trainer's timers of one attempt, which have their own file."""

    def __init__(self, attempt: AttemptDir) -> None:
        self._folder = attempt.spans
        self._others: set[Path] = set()  # files of ranks, replicas and workers
        self._tail: LineTail | None = None
        self._open: dict[tuple[str, float], Span] = {}
        self._restarts = 0

    def read(self) -> tuple[Span | None, list[Span]]:
        """The innermost running timer, and the timers that ended since the last call, except the step's."""
        tail = self._tail = self._tail or self._found()
        ended = []
        while tail and (lines := tail.read()):
            if tail.restarts != self._restarts:  # the ends of these may be in the older file
                self._restarts = tail.restarts
                self._open.clear()
            for span in filter(None, map(Span.from_line, lines)):
                if span.name == STEP:
                    continue
                if span.end is not None:
                    self._open.pop((span.name, span.start), None)
                    ended.append(span)
                else:
                    self._open[span.name, span.start] = span
        return next(reversed(self._open.values()), None), ended

    def _found(self) -> LineTail | None:
        with contextlib.suppress(OSError):
            for path in self._folder.glob("*.jsonl"):
                if path in self._others:
                    continue
                with path.open("rb") as file:
                    first = file.readline()
                if (span := Span.from_line(first)) is None:
                    continue
                if span.lane == TRAINER:
                    return LineTail(path, max(0, _size(path) - _RUNNING))
                self._others.add(path)
        return None


def within(periods: Sequence[tuple[float, float]], moment: float) -> bool:
    """Whether a moment is in one of these sorted, disjoint periods."""
    place = bisect_right(periods, (moment, float("inf"))) - 1
    return place >= 0 and moment <= periods[place][1]


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
