"""Finding lines in a log of any size: by text, by trouble, by who wrote them."""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from launcher.console.lines import PieceSplitter, clean_line
from launcher.console.marks import TROUBLE_HINTS, reports_trouble
from launcher.console.pager import LogPager, RawLine, shown

_REGION = 1 << 20

SOURCES = ("all", "driver", "workers", "engine")
_ENGINE = re.compile(r"EngineCore|vLLM|SGLang|sglang|Worker(?:_|$)")  # vLLM's own are `Worker`, `Worker_TP0`
_DRIVER = re.compile(r"TaskRunner|$|raylet|autoscaler")


class Wanted(NamedTuple):
    """What to look for. A line that `test` takes contains one of the hints (in small letters if `lower`)."""

    test: Callable[[bytes], bool]
    hints: tuple[bytes, ...] = ()
    lower: bool = False


def containing(text: str) -> Wanted:
    """Lines that show `text`, capital or small."""
    text = text.lower()

    def test(raw: bytes) -> bool:
        return text in shown(RawLine(0, 0, raw)).shown.lower()

    # escapes may stand between words, so the longest word tells whether a look is worth it
    words: list[str] = re.findall(r"[a-z0-9_]+", text)
    return Wanted(test, (max(words, key=len).encode(),) if words else (), lower=True)


def written_by(group: str) -> Callable[[bytes], bool] | None:
    """Whether a line is of one of SOURCES; None for "all"."""
    if group == "all":
        return None

    def test(raw: bytes) -> bool:
        return group_of(clean_line((0, 0, raw[:400], b"")).source) == group

    return test


def group_of(source: str) -> str:
    """Which of SOURCES wrote a line: veRL's driver with Ray's daemons, the engine, or another worker."""
    if _DRIVER.match(source):
        return "driver"
    return "engine" if _ENGINE.match(source) else "workers"


def both(wanted: Wanted, keep: Callable[[bytes], bool] | None) -> Wanted:
    """Lines that pass a filter as well."""
    if keep is None:
        return wanted
    return wanted._replace(test=lambda raw: keep(raw) and wanted.test(raw))


class Search:
    """One search through a log, in its own thread. `at` tells how far it is; `cancel` ends it."""

    def __init__(self, pager: LogPager, wanted: Wanted, start: int, *, forward: bool) -> None:
        self.pager, self.wanted, self.start, self.forward = pager, wanted, start, forward
        self.at = start
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True

    @property
    def done(self) -> float:
        """The part of the way that is behind it, 0 to 1."""
        way = self.pager.size - self.start if self.forward else self.start
        return abs(self.at - self.start) / way if way else 1.0

    def run(self) -> int | None:
        """Where the next line starts that is wanted: at `start` or after it, or else before it."""
        while not self.cancelled:
            region = self._region_after() if self.forward else self._region_before()
            if not region:
                return None
            offset = self.at if self.forward else self.at - len(region)
            if (found := self._inside(region, offset)) is not None:
                return found
            self.at = offset + len(region) if self.forward else offset
        return None

    def count(self) -> int:
        """How many lines are wanted from `start` to the end of the log; those until it was cancelled."""
        found = 0
        while not self.cancelled and (region := self._region_after()):
            found += sum(1 for _ in self._wanted_in(region))
            self.at += len(region)
        return found

    def _region_after(self) -> bytes:
        """Whole lines from `at` on; of the last line of the file, or one longer than a region, its start."""
        if self.at in self.pager.gap:
            self.at = self.pager.gap.stop
        data = self.pager.read(self.at, _REGION)
        return data[: data.rfind(b"\n") + 1] or data

    def _region_before(self) -> bytes:
        if self.at - 1 in self.pager.gap:
            self.at = self.pager.gap.start
        start = max(self.at - _REGION, 0)
        data = self.pager.read(start, self.at - start)
        cut = data.find(b"\n") + 1 if start else 0
        return data[cut:] or data

    def _inside(self, region: bytes, offset: int) -> int | None:
        """Where the first wanted line of a region starts, the last one of a search backward."""
        found = None
        for place in self._wanted_in(region):
            found = place
            if self.forward:
                break
        return None if found is None else self.pager.start_of(offset + found)

    def _wanted_in(self, region: bytes) -> Iterator[int]:
        """Where in a region the lines begin that are wanted."""
        wanted, place = self.wanted, 0
        looked = region.lower() if wanted.lower else region
        hints = [hint for hint in wanted.hints if hint in looked]
        if wanted.hints and not hints:
            return
        end = -1 if region.endswith(b"\n") else None  # nothing follows the last newline
        for line, small in zip(region.split(b"\n")[:end], looked.split(b"\n")[:end], strict=True):
            if (not wanted.hints or any(map(small.__contains__, hints))) and wanted.test(line):
                yield place
            place += len(line) + 1


def is_trouble(raw: bytes) -> bool:
    """Whether a line reports an error."""
    pieces = PieceSplitter().feed(raw + b"\n") if b"\r" in raw else [(0, 0, raw, b"")]
    return any(reports_trouble(piece[2]) for piece in pieces)


TROUBLE = Wanted(is_trouble, TROUBLE_HINTS)  # what the health rule ERR-1 and the diagnosis see
