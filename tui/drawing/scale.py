"""Axes: round ranges that seldom move, and labels of at most six cells."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

LABEL = 6  # cells of a label
_STEPS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
_TICKS = (1.0, 2.0, 2.5, 5.0, 10.0)
_HUGE = 1e300  # a distance between two larger values would not be finite


class Scale(NamedTuple):
    """A range of values and the ticks in it; `low` and `high` are ticks themselves."""

    low: float
    high: float
    ticks: tuple[float, ...]


def value_scale(low: float, high: float, intervals: int) -> Scale:
    """The tightest round range around `low` to `high` with at most `intervals` distances between ticks.

    Snapping outward keeps the curve where it is while values drift, so that few cells are painted.
    """
    low, high = sorted(max(-_HUGE, min(value, _HUGE)) for value in (low, high))
    if high - low <= 1e-9 * max(abs(low), abs(high)):  # one value: a range around it, or 0 to 1
        around = abs(low) * 0.1 or 1.0
        low, high = (0.0, 1.0) if low == 0 else (low - around, high + around)
    intervals = max(1, intervals)
    rough = (high - low) / intervals
    exponent = math.floor(math.log10(rough)) if rough > 0 else -300
    for power in range(exponent, exponent + 3):
        for factor in _TICKS:
            tick = factor * 10.0**power
            if tick < rough * 0.999 or tick == 0:
                continue
            first, last = math.floor(low / tick + 1e-9), math.ceil(high / tick - 1e-9)
            if last - first <= intervals:
                ticks = tuple(index * tick for index in range(first, max(last, first + 1) + 1))
                return Scale(ticks[0], ticks[-1], ticks)
    return Scale(low, high, (low, high))


def step_limit(last: int, total: int | None) -> int:
    """The right end of the step axis: the planned total, else the next rung of a ladder above `last`.

    A fixed end keeps every column where it is, so that one more step paints a few cells.
    """
    if total is not None and total >= max(last, 1):
        return total
    last = max(last, 10)
    power: int = 10 ** math.floor(math.log10(last))
    rungs = [round(rung * scale) for scale in (power, power * 10) for rung in _STEPS]
    return next(rung for rung in rungs if rung >= last)


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
