"""Spans: the work of each process of an attempt over time, one line each in the files of its folder `spans`.

`ppo_tui_inside.plugin.spans` writes them, one file per process and the older one next to it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from launcher.core.tail import LineTail
from launcher.record.json import RARE, Record
from launcher.record.layout import AttemptDir

_NEWEST = 1 << 20  # bytes of each file that are read at first: some steps


@dataclass(frozen=True, slots=True)
class Span(Record):
    """Work of one lane (`trainer`, `rank_0`, `replica_0`, `process_4711`) in unix seconds; open without `end`.

    Only spans of the trainer have `step`. For micro-batches, `count` is their number, and `parts` are tokens and
    seconds of the first ones.
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
        """The span of a line; None if it is damaged."""
        try:
            return cls.from_json(orjson.loads(line))
        except ValueError:
            return None


class SpanTail:
    """Follows the spans of one attempt, from the first one (`whole`) or from the newest ones on."""

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


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
