"""All metrics of a run in memory: compact, append-only, fast to draw at any width.

10,000 steps of 100 keys are a million doubles (12 MB with their steps). A chart needs a few hundred columns; a pyramid
of minimum, maximum and last value per block provides them without reading every point, and keeps spikes of single
steps.
"""

import math
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from struct import pack
from typing import NamedTuple

from launcher.metrics.records import StepRecord, trains

_FAN = 16  # points per block of the first level, blocks per block of each higher one


class Span(NamedTuple):
    """Lowest, highest and last finite value of a range of steps."""

    low: float
    high: float
    last: float


class _Level:
    """Minimum, maximum and last finite value per full block; nan for blocks without finite values."""

    __slots__ = ("highs", "lasts", "lows")

    def __init__(self) -> None:
        self.lows, self.highs, self.lasts = array("d"), array("d"), array("d")

    def append(self, span: Span | None) -> None:
        low, high, last = span or (math.nan, math.nan, math.nan)
        self.lows.append(low)
        self.highs.append(high)
        self.lasts.append(last)

    def span(self, start: int, stop: int) -> Span | None:
        return _span(self.lows[start:stop], self.highs[start:stop], self.lasts[start:stop])


def _span(lows: "array[float]", highs: "array[float]", lasts: "array[float]") -> Span | None:
    """Joins several spans; faster if all values are finite."""
    if not lows:
        return None
    total = sum(lows) + sum(highs)
    if math.isfinite(total):
        return Span(min(lows), max(highs), lasts[-1])
    good = [i for i in range(len(lows)) if math.isfinite(lows[i]) and math.isfinite(highs[i])]
    if not good:
        return None
    return Span(min(lows[i] for i in good), max(highs[i] for i in good), lasts[good[-1]])


class Series:
    """One key's values over the steps of a run.

    `steps` (ascending) and `values` (nan and inf as logged) are parallel arrays; steps without the key are omitted.
    `cuts` counts removals of values: while unchanged, the series only grew.
    """

    __slots__ = ("_levels", "cuts", "steps", "values")

    def __init__(self) -> None:
        self.cuts = 0
        self.steps: array[int] = array("i")
        self.values: array[float] = array("d")
        self._levels: list[_Level] = []

    def __len__(self) -> int:
        return len(self.values)

    def append(self, step: int, value: float) -> None:
        """Adds the value of a later step: O(1)."""
        self.steps.append(step)
        self.values.append(value)

    def extend(self, steps: "array[int]", values: Sequence[float]) -> None:
        """Adds the values of several later steps."""
        self.steps.extend(steps)
        self.values.frombytes(pack(f"{len(values)}d", *values))  # an array takes four times as long, one by one

    def cut(self, step: int) -> None:
        """Removes the values from `step` on, which a resumed attempt repeats."""
        keep = bisect_left(self.steps, step)
        del self.steps[keep:], self.values[keep:]
        self._levels.clear()
        self.cuts += 1

    @property
    def last(self) -> float | None:
        """The newest value, nan and inf included."""
        return self.values[-1] if self.values else None

    def at(self, step: int) -> float | None:
        """The value of one step; None if the step lacks the key."""
        i = bisect_left(self.steps, step)
        return self.values[i] if i < len(self.steps) and self.steps[i] == step else None

    def span(self, first: int, last: int) -> Span | None:
        """Lowest, highest and last finite value of the steps `first` to `last`, both included."""
        return self._span(bisect_left(self.steps, first), bisect_left(self.steps, last + 1))

    def columns(self, first: int, last: int, count: int) -> list[Span | None]:
        """The steps `first` to `last` in `count` columns of equal width; None for columns without finite values."""
        width = (last - first + 1) / count
        edges = [bisect_left(self.steps, first + math.ceil(i * width)) for i in range(count + 1)]
        return [self._span(edges[i], edges[i + 1]) for i in range(count)]

    def _span(self, start: int, stop: int) -> Span | None:
        """The span of the values `start` to `stop` (indices): blocks from the pyramid, the ends value by value."""
        if stop - start <= 4 * _FAN:
            values = self.values[start:stop]
            return _span(values, values, values)
        self._grow()
        parts: list[Span | None] = []
        tail: list[Span | None] = []
        plain = self.values
        first, last = -(-start // _FAN), stop // _FAN
        parts.append(_span(plain[start : first * _FAN], plain[start : first * _FAN], plain[start : first * _FAN]))
        tail.append(_span(plain[last * _FAN : stop], plain[last * _FAN : stop], plain[last * _FAN : stop]))
        for depth, level in enumerate(self._levels):
            upper_first, upper_last = -(-first // _FAN), last // _FAN
            if depth + 1 == len(self._levels) or upper_first >= upper_last:
                parts.append(level.span(first, last))
                break
            parts.append(level.span(first, upper_first * _FAN))
            tail.append(level.span(upper_last * _FAN, last))
            first, last = upper_first, upper_last
        spans = [part for part in (*parts, *reversed(tail)) if part]
        if not spans:
            return None
        return Span(min(span.low for span in spans), max(span.high for span in spans), spans[-1].last)

    def _grow(self) -> None:
        """Adds blocks that filled up since the last call."""
        values, depth, size = self.values, 0, len(self.values) // _FAN
        while size:
            if depth == len(self._levels):
                self._levels.append(_Level())
            level = self._levels[depth]
            for block in range(len(level.lows), size):
                start, stop = block * _FAN, (block + 1) * _FAN
                if depth:
                    level.append(self._levels[depth - 1].span(start, stop))
                else:
                    level.append(_span(values[start:stop], values[start:stop], values[start:stop]))
            depth, size = depth + 1, size // _FAN


class SeriesStore:
    """All keys of a run over all attempts; newer values win where a resumed attempt repeats steps.

    `seams`: first step of each attempt after the first. `times`: unix seconds by position in `steps`. `unit`: what
    they count.
    """

    def __init__(self, unit: str = "step") -> None:
        self.unit = unit
        self._series: dict[str, Series] = {}
        self.steps: array[int] = array("q")
        self.times: array[float] = array("d")
        self.seams: list[int] = []
        self._attempt: int | None = None

    def add(self, record: StepRecord, attempt: int = 1) -> None:
        """Adds one step of an attempt, replacing an earlier record of this step."""
        step = record.step
        if self._attempt is not None and attempt != self._attempt:
            self.seams.append(step)
        self._attempt = attempt
        again = bool(self.steps) and step <= self.steps[-1]
        if again:
            # the validation before a resumed attempt has the number of the checkpoint's step, which stays
            self._cut(step if trains(record.data) else step + 1)
        if not self.steps or step > self.steps[-1]:
            self.steps.append(step)
            self.times.append(record.t)
        for key, value in record.data.items():
            series = self._series.get(key)
            if series is None:
                series = self._series[key] = Series()
            elif again:
                series.cut(step)
            series.append(step, value)

    def add_all(self, records: Sequence[StepRecord], attempt: int = 1) -> None:
        """Adds several steps of an attempt; consecutive steps with the same keys are added key by key."""
        begin = 0
        while begin < len(records):
            self.add(records[begin], attempt)
            end = self._alike(records, begin)
            if end - begin > 1:
                self._extend(records[begin + 1 : end])
            begin = end

    @staticmethod
    def _alike(records: Sequence[StepRecord], begin: int) -> int:
        """The end of the range of consecutive steps with identical keys."""
        step, keys = records[begin].step, list(records[begin].data)
        end = begin + 1
        while end < len(records) and records[end].step > step and list(records[end].data) == keys:
            step, end = records[end].step, end + 1
        return end

    def _extend(self, records: Sequence[StepRecord]) -> None:
        steps = array("i", [record.step for record in records])
        self.steps.extend(record.step for record in records)
        self.times.extend(record.t for record in records)
        columns = zip(*(record.data.values() for record in records), strict=True)
        for key, values in zip(records[0].data, columns, strict=True):
            self._series[key].extend(steps, values)

    def _cut(self, step: int) -> None:
        keep = bisect_left(self.steps, step)
        del self.steps[keep:], self.times[keep:]
        for series in self._series.values():
            series.cut(step)

    def keys(self) -> list[str]:
        """All keys with values, sorted."""
        return sorted(self._series)

    def get(self, key: str) -> Series | None:
        """The series of a key; None if never logged."""
        return self._series.get(key)

    def first_of(self, *keys: str) -> tuple[str, Series] | None:
        """The first logged series among several names of a metric."""
        return next(((key, self._series[key]) for key in keys if key in self._series), None)

    def finite(self, step: int, *keys: str) -> float | None:
        """The finite value at a step under the first logged name of a metric."""
        found = self.first_of(*keys)
        value = found[1].at(step) if found else None
        return value if value is not None and math.isfinite(value) else None

    @property
    def last_step(self) -> int | None:
        return self.steps[-1] if self.steps else None
