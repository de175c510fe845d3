"""Axes: round ranges that seldom move, and labels of at most six cells."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

LABEL = 6  # cells of a label
_STEPS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
_BEGINNING = 50  # steps that a planned run has room for from its start
_REACH = 1.5  # times the rung that the plan may be: the data then fill 4/9 of the chart at least
_TICKS = (1.0, 2.0, 2.5, 5.0, 10.0)
_HUGE, _TINY = 1e300, 1e-300  # beyond them distances are not finite, or not above 0
# Rows of text -> numbers of intervals whose ticks fall on whole rows, the preferred one first; larger charts
# take any number that leaves two rows between labels.
_COUNTS = {1: (1,), 2: (1,), 3: (2, 1), 4: (3, 1), 5: (2, 4, 1), 6: (2, 5, 1), 7: (3, 2, 6, 1)}


class Scale(NamedTuple):
    """A range of values and the ticks in it; `low` and `high` are ticks themselves."""

    low: float
    high: float
    ticks: tuple[float, ...]


def value_scale(low: float, high: float, rows: int) -> Scale:
    """The tightest round range around `low` to `high` whose ticks lie evenly on `rows` rows of text.

    Snapping outward keeps the curve where it is while values drift, so that few cells are painted.
    """
    low, high = sorted(max(-_HUGE, min(value, _HUGE)) for value in (low, high))
    if high - low <= max(1e-9 * max(abs(low), abs(high)), _TINY):  # one value: a range around it, or 0 to 1
        around = abs(low) * 0.1
        low, high = (low - around, high + around) if around > _TINY else (0.0, 1.0)
    counts: Sequence[int] = _COUNTS.get(rows) or range(max(rows // 3, 1), 0, -1)
    if low < 0 < high:  # 0 is a tick, and not at an end
        counts = [count for count in counts if count > 1] or [2]
    _, ticks = min(
        (_ticks(low, high, count) for count in counts), key=lambda found: round(found[0] / (high - low), 6)
    )
    return Scale(ticks[0], ticks[-1], ticks)


def _ticks(low: float, high: float, count: int) -> tuple[float, tuple[float, ...]]:
    """The smallest round distance with which `count` intervals hold the range: their span, and the ticks."""
    rough = (high - low) / count * 0.999
    tick = 10.0 ** math.floor(math.log10(rough))
    while True:
        for factor in _TICKS:
            distance = tick * factor
            first, last = math.floor(low / distance + 1e-9), math.ceil(high / distance - 1e-9)
            if distance >= rough and last - first <= count:
                if last > 0:  # what is left over lies on the side away from 0
                    last = first + count
                first = last - count
                return distance * count, tuple(index * distance for index in range(first, last + 1))
        tick *= 10


def log_scale(low: float, high: float, rows: int) -> Scale:
    """The tightest range from one of 1, 2, 5, 10, ... to another around values above 0.

    Its ticks are all of those when each finds rows of its own, else its ends and powers of ten.
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
    """How far below `high` a value lies: 0 at `high`, 1 at `low` and whatever is lower."""
    value = min(max(value, low), high)
    if log:
        low, high, value = math.log10(low), math.log10(high), math.log10(value)
    return (high - value) / (high - low)


def step_limit(last: int, total: int | None) -> int:
    """The right end of the step axis, a rung of a ladder above `last`, or the planned `total`.

    The end is fixed for many steps, so that one more of them paints a few cells. The plan is the end once it
    is within reach of the rung: a run of thousands of steps shows its first hours on the whole chart, too.
    """
    if total is None or total < max(last, 1):
        return _rung(last)
    rung = _rung(max(last, _BEGINNING))
    return total if total <= _REACH * rung else rung


def _rung(last: int) -> int:
    last = max(last, 10)
    power: int = 10 ** math.floor(math.log10(last))
    rungs = [round(rung * scale) for scale in (power, power * 10) for rung in _STEPS]
    return next(rung for rung in rungs if rung >= last)


def fit_limit(last: int) -> int:
    """The right end of a step axis that ends where the data does, give or take: 212 gives 220.

    Not at the very step: then every step would move every column.
    """
    power: int = 10 ** math.floor(math.log10(max(last, 1)))
    stride = max(power // 5, 10)
    return max(-(-last // stride), 1) * stride


def labels(ticks: Sequence[float]) -> list[str]:
    """Ticks as text of at most six cells, all with the same unit and the same decimals."""
    size = max((abs(tick) for tick in ticks), default=0.0)
    distance = min((abs(b - a) for a, b in pairwise(ticks) if a != b), default=size)
    for least, factor, unit in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e3, 1e3, "k"), (1e-2, 1.0, "")):
        if least <= size < factor * 1e4:
            return [_label(tick / factor, distance / factor, unit) for tick in ticks]
    return ["0" if tick == 0 else _scientific(tick) for tick in ticks]


def _label(value: float, distance: float, unit: str) -> str:
    decimals = 0
    while decimals < 4 and abs(distance * 10**decimals - round(distance * 10**decimals)) > 1e-6:
        decimals += 1
    text = f"{value:.{decimals}f}"
    while len(text) + len(unit) > LABEL and decimals:
        decimals -= 1
        text = f"{value:.{decimals}f}"
    return text + unit if float(text) else "0"


def _scientific(value: float) -> str:
    for digits in (1, 0):
        mantissa, exponent = f"{value:.{digits}e}".split("e")
        text = f"{mantissa.removesuffix('.0')}e{int(exponent)}"
        if len(text) <= LABEL:
            return text
    return text[:LABEL]
