"""Small streaming statistics, each bounded in memory whatever the length of the run."""

import math
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import islice

SIGMA_WINDOW = 21
_REBUILD_AFTER = 60
_TINY = 1e-300  # stands in for 0 in logarithms
_FIRST = 8  # accepted values that the beginning is the median of
_AGO = (50, 100)  # accepted values back


def median(values: Iterable[float]) -> float:
    """Median of at least one value (mean of the middle two when their number is even)."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def sigma(values: Sequence[float] | deque[float], window: int = SIGMA_WINDOW) -> float:
    """Robust step-to-step noise, blind to a steady trend: from second differences of the last `window` values.

    A second difference of white noise has variance 6 sigma², and 1.4826 turns a median absolute value into a
    standard deviation. 0 with fewer than 6 values.
    """
    last = list(islice(values, max(0, len(values) - window), None))
    if len(last) < 6:
        return 0.0
    bends = [abs(c - 2 * b + a) for a, b, c in zip(last, last[1:], last[2:], strict=False)]
    return 1.4826 * median(bends) / math.sqrt(6)


def log_sigma(values: Iterable[float]) -> float:
    """The noise of a figure whose swings are in proportion to it: that of its logarithm."""
    return sigma([math.log(max(value, _TINY)) for value in values])


def swing(sigmas: float, noise: float) -> float:
    """The factor that so many sigmas are, of a figure whose logarithm has this noise."""
    return math.exp(min(sigmas * noise, 700))  # what a float can hold


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
    """A rule's own past: the last `size` accepted values and their median, those of long ago, the beginning.

    The recent median follows a slow drift; what was 50 to 100 values ago and at the beginning does not.
    Refused values stay out, so that a fault which lasts does not become the new normal. After 60 refusals
    in a row the last `size` refused values become the baseline: a deliberate change of regime must not stay
    red for ever.
    """

    def __init__(self, size: int) -> None:
        self.values: deque[float] = deque(maxlen=size)
        self._long: deque[float] = deque(maxlen=_AGO[1])
        self._first: list[float] = []
        self._start = math.nan
        self.first = math.nan  # median of the first three accepted values
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

    @property
    def start(self) -> float:
        """Median of the first eight accepted values, of the first three while there are fewer; nan before those."""
        return self._start

    @property
    def settled(self) -> bool:
        """Whether there are enough values for the median; until then it would follow what it should warn of."""
        return len(self._first) >= _FIRST

    @property
    def ago(self) -> float:
        """Median of the values 50 to 100 steps ago; nan before there are eight of them."""
        count = len(self._long) - _AGO[0]
        return median(islice(self._long, count)) if count >= _FIRST else math.nan

    @property
    def before(self) -> float:
        """Median of the values 50 to 100 steps ago; the beginning before there are eight of them."""
        ago = self.ago
        return self._start if math.isnan(ago) else ago

    @property
    def low(self) -> float:
        """What a rise is measured from: the beginning at first, then the lower of recent and long ago."""
        return min(self.median, self.before) if self.settled else self.start

    @property
    def high(self) -> float:
        """The highest level of the last 100 accepted values: below it, a rise leads back to where it was."""
        parts = [islice(self._long, place, place + _FIRST) for place in range(0, len(self._long), _FIRST)]
        highest = max(map(median, parts), default=math.nan)
        return max(highest, self.first) if len(self._long) < _AGO[1] and len(self._first) >= 3 else highest

    def add(self, x: float, refused: bool = False) -> None:
        """Takes in the value of a step that has been judged."""
        if not refused:
            self.values.append(x)
            self._long.append(x)
            if len(self._first) < _FIRST:
                self._first.append(x)
                if len(self._first) in (3, _FIRST):
                    self._start = median(self._first)
                if len(self._first) == 3:
                    self.first = self._start
            self._refusals = 0
        else:
            self._refused.append(x)
            self._refusals += 1
            if self._refusals < _REBUILD_AFTER:
                return
            self.values.extend(self._refused)
            self._long.extend(self._refused)
            self._refusals = 0
        self._refused.clear()
        self._median = None
