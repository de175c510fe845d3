"""Finds lines in a log of any size: by text, by error, by writer."""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from launcher.console.lines import PieceSplitter, clean_line
from launcher.console.marks import TROUBLE_HINTS, reports_trouble
from launcher.console.pager import LogPager, RawLine, shown

_REGION = 1 << 20

SOURCES = ("all", "driver", "workers", "engine")
_ENGINE = re.compile(r"EngineCore|vLLM|SGLang|sglang|Worker(?:_|$)")  # vLLM's workers are `Worker`, `Worker_TP0`
_DRIVER = re.compile(r"TaskRunner|$|raylet|autoscaler")


class Wanted(NamedTuple):
    """A search. An accepted line contains one of the hints (in lower case if `lower`)."""

    test: Callable[[bytes], bool]
    hints: tuple[bytes, ...] = ()
    lower: bool = False


def containing(text: str) -> Wanted:
    """Lines with `text`, in upper or lower case."""
    text = text.lower()

    def test(raw: bytes) -> bool:
        return text in shown(RawLine(0, 0, raw)).shown.lower()

    # escapes may separate words, so the longest word is the hint
    words: list[str] = re.findall(r"[a-z0-9_]+", text)
    return Wanted(test, (max(words, key=len).encode(),) if words else (), lower=True)


def written_by(group: str) -> Callable[[bytes], bool] | None:
    """A test for lines of one of SOURCES; None for "all"."""
    if group == "all":
        return None

    def test(raw: bytes) -> bool:
        return group_of(clean_line((0, 0, raw[:400], b"")).source) == group

    return test


def group_of(source: str) -> str:
    """A writer's group in SOURCES: veRL's driver with Ray's daemons, the engine, or another worker."""
    if _DRIVER.match(source):
        return "driver"
    return "engine" if _ENGINE.match(source) else "workers"


def both(wanted: Wanted, keep: Callable[[bytes], bool] | None) -> Wanted:
    """A search whose lines also pass a filter."""
    if keep is None:
        return wanted
    return wanted._replace(test=lambda raw: keep(raw) and wanted.test(raw))


class Search:
    """One search through a log, in its own thread. `at`: its progress. `cancel` ends it."""

    def __init__(self, pager: LogPager, wanted: Wanted, start: int, *, forward: bool) -> None:
        self.pager, self.wanted, self.start, self.forward = pager, wanted, start, forward
        self.at = start
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True

    @property
    def done(self) -> float:
        """The searched share, 0 to 1."""
        way = self.pager.size - self.start if self.forward else self.start
        return abs(self.at - self.start) / way if way else 1.0

    def run(self) -> int | None:
        """The start of the next match: at or after `start`; before it in a backward search."""
        while not self.cancelled:
            region = self._region_after() if self.forward else self._region_before()
            if not region:
                return None
            offset = self.at if self.forward else self.at - len(region)
            if (place := self._inside(region, offset)) is not None:
                return place
            self.at = offset + len(region) if self.forward else offset
        return None

    def count(self) -> int:
        """The number of matches from `start` to the log's end, or until canceled."""
        count = 0
        while not self.cancelled and (region := self._region_after()):
            count += sum(1 for _ in self._wanted_in(region))
            self.at += len(region)
        return count

    def _region_after(self) -> bytes:
        """Whole lines after `at`; the start of the last line, or of one longer than a region."""
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
        """The start of a region's first match; of its last one in a backward search."""
        match = None
        for place in self._wanted_in(region):
            match = place
            if self.forward:
                break
        return None if match is None else self.pager.start_of(offset + match)

    def _wanted_in(self, region: bytes) -> Iterator[int]:
        """The starts of the matching lines in a region."""
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
    return any(reports_trouble(piece[2]) for piece in PieceSplitter().feed(raw + b"\n"))


TROUBLE = Wanted(is_trouble, TROUBLE_HINTS)  # the same lines as in ERR-1 and the diagnosis
