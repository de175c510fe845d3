"""The model of a metric: its level, trend, noise and usual value. No other module estimates them."""

import math
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

KEPT = 40  # values that estimates look back
NOISY = 21  # values that the noise of a step is estimated from
USUAL = 20  # accepted values that the usual one is the median of
FIRST = 8  # accepted values that the beginning is the median of
AGO = (50, 100)  # accepted values back
_REBUILD_AFTER = 60
ROUNDING = 0.001  # a policy loss with one update per batch is 0 but for rounding
_STILL_FALLS, _BEYOND_NOISE = 0.9, 1.5  # the newest ten values, to the oldest ten, and below them in units of the noise
_TINY = 1e-300  # replaces 0 in logarithms


def median(values: Iterable[float]) -> float:
    """The median (mean of the middle two for an even number); nan without values."""
    ordered = sorted(values)
    if not ordered:
        return math.nan
    middle, odd = divmod(len(ordered), 2)
    return ordered[middle] if odd else (ordered[middle - 1] + ordered[middle]) / 2


class Noise:
    """The robust standard deviation per step of the last values, from second differences: insensitive to a steady
    trend.

    A second difference of white noise has variance 6 sigma²; 1.4826 converts a median absolute value into a standard
    deviation. With a `floor`, it is computed on logarithms.
    """

    def __init__(self, count: int, values: Iterable[float] = (), floor: float = 0.0) -> None:
        self._floor = floor
        self._before = self._last = math.nan
        self._bends: deque[float] = deque(maxlen=count - 2)
        for x in values:
            self.add(x)

    def add(self, x: float) -> None:
        """Takes in the next value."""
        if self._floor:
            x = math.log(max(x, self._floor))
        if self._before == self._before:  # not nan
            self._bends.append(abs(x - 2 * self._last + self._before))
        self._before, self._last = self._last, x

    @property
    def size(self) -> float:
        """The standard deviation; 0 with fewer than 6 values."""
        return 1.4826 * median(self._bends) / math.sqrt(6) if len(self._bends) >= 4 else 0.0


class _Estimate:
    """An estimate computed at most once per value."""

    def __init__(self, of: Callable[[Any], float]) -> None:
        self._of = of

    def __get__(self, metric: "Metric", owner: object) -> float:
        made = metric.made
        if self not in made:
            made[self] = self._of(metric)
        return made[self]


class Metric:
    """A metric step by step, in constant memory.

    A value is accepted when the next one arrives, unless a rule refused it: so a lasting fault does not become usual.
    After 60 refusals in a row the last 20 refused values are accepted: a deliberate change of regime must not stay red
    for ever. The usual value follows a slow drift; the values of 50 to 100 steps ago and of the start do not.
    """

    noisy = NOISY

    def __init__(self, floor: float = _TINY, sample: float | None = None) -> None:
        self._floor = floor  # a value below has no ratio to another
        self._sample = sample  # sample size of a share: independent items, such as prompts
        self.now = math.nan  # the value of this step; nan where it has none
        self.count = 0
        self.smooth = math.nan  # exponential mean over five steps
        self.run = 0  # steps in a row with a value other than 0
        self.made: dict[_Estimate, float] = {}
        self._values: list[float] = []
        self._past: list[float] = []
        self._old: list[float] | None = None  # sorted values of AGO, once a rule needs them
        self._first: list[float] = []
        self._refused: list[float] = []  # consecutive refused values
        self._refuse = False
        self._noise: Noise | None = None  # created when a rule needs it
        self._log_noise: Noise | None = None
        self._usual_log_noise: Noise | None = None

    def see(self, x: float | None) -> None:
        """Takes in the value of a step; a missing value changes nothing."""
        if self.now == self.now:  # not nan
            self._settle()
        if x is None or math.isnan(x):
            self.now = math.nan
            return
        self.now = x
        self.smooth = x if self.count == 0 else self.smooth + (x - self.smooth) / 3
        self.count += 1
        self.run = self.run + 1 if x else 0
        self._values.append(x)
        if len(self._values) > KEPT:
            del self._values[0]
        if self._noise:
            self._noise.add(x)
        if self._log_noise:
            self._log_noise.add(x)
        self.made.clear()

    def refuse(self) -> None:
        """Excludes this step's value from the usual value."""
        self._refuse = True

    def _settle(self) -> None:
        accepted = [self.now]
        if self._refuse:
            self._refuse = False
            self._refused.append(self.now)
            if len(self._refused) < _REBUILD_AFTER:
                return
            accepted = self._refused[-USUAL:]
        elif len(self._first) < FIRST:
            self._first.append(self.now)
        self._refused.clear()
        for x in accepted:
            self._accept(x)

    def _accept(self, x: float) -> None:
        past, old = self._past, self._old
        past.append(x)
        if old is not None and len(past) > AGO[0]:
            insort(old, past[-AGO[0] - 1])
        if len(past) > AGO[1]:
            gone = past.pop(0)
            if old is not None:
                del old[bisect_left(old, gone)]
        if self._usual_log_noise:
            self._usual_log_noise.add(x)

    def last(self, count: int, ago: int = 0) -> list[float]:
        """The last `count` values before the newest `ago`, in order."""
        return (self._values[:-ago] if ago > 0 else self._values)[-count:]

    def median(self, count: int, ago: int = 0) -> float:
        """Median of `count` values before the newest `ago`."""
        return median(self.last(count, ago))

    def mean(self, count: int) -> float:
        """Mean of the last values."""
        last = self.last(count)
        return sum(last) / len(last)

    def lowest(self, count: int) -> float:
        """The lowest of the last values."""
        return min(self.last(count))

    def highest(self, count: int) -> float:
        """The highest of the last values."""
        return max(self.last(count))

    def then(self, steps: int) -> float:
        """Median of the three values before the newest `steps`; nan with fewer."""
        three = sorted(self.last(3, steps))
        return three[1] if len(three) == 3 else math.nan

    @property
    def size(self) -> float:
        """The absolute value."""
        return abs(self.now)

    @_Estimate
    def noise(self) -> float:
        """The standard deviation per step; for shares at least the binomial one: one near 0 may not vary yet."""
        self._noise = self._noise or Noise(self.noisy, self._values)
        if not self._sample or self._sample < 1:
            return self._noise.size
        share = min(max(1 / self._sample, self.usual), 0.5)
        return max(self._noise.size, math.sqrt(share * (1 - share) / self._sample))

    @_Estimate
    def log_noise(self) -> float:
        """Noise of the logarithm, for a metric whose swings are proportional to its value."""
        self._log_noise = self._log_noise or Noise(self.noisy, self._values, self._floor)
        return self._log_noise.size

    @_Estimate
    def usual_log_noise(self) -> float:
        """Noise of the logarithm over the last 20 accepted values, without flagged peaks."""
        self._usual_log_noise = self._usual_log_noise or Noise(USUAL, self._past, self._floor)
        return self._usual_log_noise.size

    def swing(self, sigmas: float, usual: bool = False) -> float:
        """The factor of a change by `sigmas` standard deviations of the logarithm."""
        noise = self.usual_log_noise if usual else self.log_noise
        return math.exp(min(sigmas * noise, 700))  # limit of a float

    @property
    def known(self) -> int:
        """Number of accepted values before this one, at most 100."""
        return len(self._past)

    @property
    def settled(self) -> bool:
        """Whether the usual value has enough values; with fewer it would follow the fault."""
        return len(self._first) >= FIRST

    @_Estimate
    def usual(self) -> float:
        """Median of the last 20 accepted values before this one."""
        return median(self._past[-USUAL:])

    @_Estimate
    def usual_size(self) -> float:
        """The usual absolute value, with a floor for rounding errors; nan before ten values."""
        return max(median(map(abs, self._past[-USUAL:])), ROUNDING) if self.known >= 10 else math.nan

    @_Estimate
    def start(self) -> float:
        """Median of the first eight accepted values (of three, if fewer than eight); nan with fewer than three."""
        return median(self._first if self.settled else self._first[:3]) if len(self._first) >= 3 else math.nan

    @property
    def left(self) -> float:
        """The smoothed value as a share of the starting value."""
        return self.smooth / self.start if self.start else 1.0

    @property
    def falls(self) -> bool:
        """Whether the last 40 values fall beyond their noise (times 0.6, for a difference of medians of ten)."""
        before, now = self.median(10, min(self.count, KEPT) - 10), self.median(10)
        return now < _STILL_FALLS * before and before - now > _BEYOND_NOISE * self.noise

    @property
    def origin(self) -> float:
        """The first accepted value; nan before the second one."""
        return self._first[0] if self._first else math.nan

    @property
    def first(self) -> float:
        """Median of the first three accepted values."""
        return median(self._first[:3]) if len(self._first) >= 3 else math.nan

    @_Estimate
    def ago(self) -> float:
        """Median of the values 50 to 100 steps ago; nan with fewer than eight."""
        if self._old is None:
            self._old = sorted(self._past[: -AGO[0]])
        return median(self._old) if len(self._old) >= FIRST else math.nan

    @property
    def before(self) -> float:
        """Median of the values 50 to 100 steps ago; the starting value with fewer than eight."""
        ago = self.ago
        return self.start if math.isnan(ago) else ago

    @property
    def low(self) -> float:
        """The reference for a rise: first the starting value, later the lower of recent and 50-to-100-step median."""
        return min(self.usual, self.before) if self.settled else self.start

    @property
    def gain(self) -> float:
        """Median of the last 20 values minus that of 50 to 100 steps ago (or the first); nan before the third."""
        return self.median(USUAL) - self.before

    def reached(self, x: float) -> bool:
        """Whether one of the last 100 accepted levels was as high: a rise then returns to an earlier level."""
        places = range(0, self.known, FIRST)
        began = self.known < AGO[1] and x <= self.first
        return began or any(x <= median(self._past[place : place + FIRST]) for place in places)
