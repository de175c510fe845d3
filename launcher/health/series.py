"""Small streaming statistics, each bounded in memory whatever the length of the run."""

import math
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import islice

SIGMA_WINDOW = 21
_REBUILD_AFTER = 60


def median(values: Iterable[float]) -> float:
    """Median of at least one value (mean of the middle two when their number is even)."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def sigma(values: Sequence[float] | deque[float]) -> float:
    """Robust step-to-step noise, blind to a steady trend: from second differences of the last 21 values.

    A second difference of white noise has variance 6 sigma², and 1.4826 turns a median absolute value into a
    standard deviation. 0 with fewer than 6 values.
    """
    last = list(islice(values, max(0, len(values) - SIGMA_WINDOW), None))
    if len(last) < 6:
        return 0.0
    bends = [abs(c - 2 * b + a) for a, b, c in zip(last, last[1:], last[2:], strict=False)]
    return 1.4826 * median(bends) / math.sqrt(6)


class Ema:
    """Exponential mean that starts at its first value; `Ema(2 / 6)` is the EMA5 of the rules."""

    def __init__(self, alpha: float = 2 / 6) -> None:
        self._alpha = alpha
        self.count = 0
        self.value = math.nan

    def add(self, x: float) -> float:
        """The mean with `x` taken in."""
        self.value = x if self.count == 0 else self.value + self._alpha * (x - self.value)
        self.count += 1
        return self.value


class Baseline:
    """A rule's own recent past: the last `size` accepted values and their median.

    Refused values stay out, so that a fault which lasts does not become the new normal. After 60 refusals
    in a row the last `size` refused values become the baseline: a deliberate change of regime must not stay
    red for ever.
    """

    def __init__(self, size: int) -> None:
        self.values: deque[float] = deque(maxlen=size)
        self._refused: deque[float] = deque(maxlen=size)
        self._refusals = 0
        self._median: float | None = None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def median(self) -> float:
        """Median of the accepted values; nan before the first."""
        if self._median is None:
            self._median = median(self.values) if self.values else math.nan
        return self._median

    def add(self, x: float, refused: bool = False) -> None:
        """Takes in the value of a step that has been judged."""
        if not refused:
            self.values.append(x)
            self._refusals = 0
        else:
            self._refused.append(x)
            self._refusals += 1
            if self._refusals < _REBUILD_AFTER:
                return
            self.values.extend(self._refused)
            self._refusals = 0
        self._refused.clear()
        self._median = None
