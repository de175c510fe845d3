"""Axes: round ranges that seldom move, with ticks that labels of at most six cells show exactly."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

LABEL = 6  # cells of a label
# Few, as each new end paints the charts again, and none leaves more than 15 % of the axis empty.
_RUNGS = (1.0, 1.15, 1.3, 1.5, 1.75, 2.0, 2.3, 2.6, 3.0, 3.5, 4.0, 4.6, 5.2, 6.0, 7.0, 8.0, 9.0)
_FIRST = (2, 4, 6, 8, 10)
_REACH = 1.18  # maximum ratio of a plan to the newest step for ending the axis at the plan
_STRIDES = (1.0, 2.0, 5.0, 10.0)
_TICKS = (1.0, 2.0, 2.5, 5.0)
_HUGE, _TINY = 1e290, 1e-98  # beyond, a label has no room for the exponent
_SAME = 1e-6  # relative difference below which values are equal
_WIDER = 10  # powers of ten after which a distance that is still not given exactly never is
# Rows of text -> numbers of intervals whose ticks fall on whole rows, the preferred one first; larger charts
# take any number that leaves two rows between labels.
_COUNTS = {1: (1,), 2: (1,), 3: (2, 1), 4: (3, 1), 5: (2, 4, 1), 6: (2, 5, 1), 7: (3, 2, 6, 1)}


class Scale(NamedTuple):
    """A range of values and its ticks; `low` and `high` are ticks."""

    low: float
    high: float
    ticks: tuple[float, ...]


def value_scale(low: float, high: float, rows: int) -> Scale:
    """The tightest round range around `low` to `high` whose ticks are evenly spaced on `rows` rows of text.

    Snapping outward keeps the curve in place while values drift, so that few cells are painted. A range too narrow for
    its labels (11.6236 to 11.6241) is widened until they show its ticks: 11.623 to 11.625.
    """
    low, high = sorted(max(-_HUGE, min(value, _HUGE)) for value in (low, high))
    if high - low <= max(_SAME * max(abs(low), abs(high)), _TINY):  # a single value: a range around it, or 0 to 1
        around = abs(low) * 0.1
        low, high = (low - around, high + around) if around > _TINY else (0.0, 1.0)
    counts: Sequence[int] = _COUNTS.get(rows) or range(max(rows // 3, 1), 0, -1)
    if low < 0 < high:  # 0 is a tick, and not at an end
        counts = [count for count in counts if count > 1] or [2]
    found = filter(None, (_ticks(low, high, count) for count in counts))
    _, ticks = min(found, key=lambda each: round(each[0] / (high - low), 6))
    return Scale(ticks[0], ticks[-1], ticks)


def _ticks(low: float, high: float, count: int) -> tuple[float, tuple[float, ...]] | None:
    """The smallest round distance whose `count` intervals cover the range: span and ticks; None if no labels fit."""
    rough = (high - low) / count * 0.999
    power = math.floor(math.log10(rough))
    for distance in (10.0**p * factor for p in range(power, power + _WIDER) for factor in _TICKS):
        first, last = math.floor(low / distance + 1e-9), math.ceil(high / distance - 1e-9)
        if distance >= rough and last - first <= count:
            if last > 0:  # the surplus is on the side away from 0
                last = first + count
            first = last - count
            ticks = tuple(index * distance for index in range(first, last + 1))
            if all(len(text) <= LABEL for text in labels(ticks)):
                return distance * count, ticks
    return None


def log_scale(low: float, high: float, rows: int) -> Scale:
    """The tightest range between two of 1, 2, 5, 10, ... around positive values.

    Its ticks are all of these if each has its own row, otherwise the ends and the powers of ten.
    """
    low, high = sorted(max(_TINY, min(value, _HUGE)) for value in (low, high))
    first, last = math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1
    rungs = [mantissa * 10.0**power for power in range(first, last + 1) for mantissa in (1, 2, 5)]
    start = max(i for i, rung in enumerate(rungs) if rung <= low * (1 + 1e-9))
    stop = max(min(i for i, rung in enumerate(rungs) if rung >= high * (1 - 1e-9)), start + 1)
    ticks = rungs[start : stop + 1]
    most = max((rows + 1) // 2, 2)
    if len(ticks) > most:
        powers = [rung for i, rung in enumerate(rungs) if i % 3 == 0 and start < i < stop]
        stride = max(-(-len(powers) // max(most - 2, 1)), 1)
        inner = powers[(stride - 1) // 2 :: stride] if most > 2 else []
        ticks = [ticks[0], *inner, ticks[-1]]
    return Scale(ticks[0], ticks[-1], tuple(ticks))


def share(value: float, low: float, high: float, *, log: bool) -> float:
    """The distance of a value below `high` as a share: 0 at `high`, 1 at `low` and below."""
    value = min(max(value, low), high)
    if log:
        low, high, value = math.log10(low), math.log10(high), math.log10(value)
    return (high - value) / (high - low)


def step_limit(last: int, total: int | None) -> int:
    """The right end of the step axis, a rung of a ladder above `last`, or the planned `total`.

    The end is fixed for some steps, so that one more step paints few cells. The plan becomes the end once it is near.
    For an ended run, `total` is its last step.
    """
    power: int = 10 ** math.floor(math.log10(max(last, 1)))
    later = [round(rung * scale) for scale in (power, power * 10) for rung in _RUNGS]
    rung = next(rung for rung in (_FIRST if last <= _FIRST[-1] else later) if rung >= last)
    return total if total is not None and max(last, 1) <= total <= max(rung, _REACH * last) else rung


def stride(least: float) -> float:
    """The smallest of 1, 2, 5, 10, 20, ... not below `least`: a tick distance for an x axis of counts."""
    power = 10.0 ** math.floor(math.log10(max(least, 1.0)))
    return next(power * factor for factor in _STRIDES if power * factor >= least * (1 - 1e-9))


def labels(ticks: Sequence[float]) -> list[str]:
    """Round ticks as exact text, with one unit and equal decimals."""
    size = max((abs(tick) for tick in ticks), default=0.0)
    distance = min((abs(b - a) for a, b in pairwise(ticks) if a != b), default=size)
    for least, factor, unit in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e3, 1e3, "k"), (1e-2, 1.0, "")):
        if least <= size < factor * 1e4:
            decimals = len(f"{distance / factor:.12f}".rstrip("0").partition(".")[2])
            return [f"{tick / factor:.{decimals}f}{unit}" if tick else "0" for tick in ticks]
    return [_scientific(tick) if tick else "0" for tick in ticks]


def _scientific(value: float) -> str:
    mantissa, exponent = f"{value:.12e}".split("e")
    return f"{mantissa.rstrip('0').removesuffix('.')}e{int(exponent)}"
