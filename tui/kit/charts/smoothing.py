"""Moving averages of series, computed once and taken on as a run goes on."""

import math

from launcher.metrics.store import Series

_MOST = 24  # averages that are kept; a screen shows about ten


class Average:
    """The exponential moving average of a series, without the pull of its start (debiased).

    It is made of the values themselves, before a chart reduces them to columns. A value that is not finite
    leaves a gap and does not touch the average. `weight`, below 1, is how much of the average is the past.
    """

    def __init__(self, source: Series, weight: float) -> None:
        self.source, self.weight = source, weight
        self._begin()

    def _begin(self) -> None:
        self._series = Series()
        self._cuts = self.source.cuts
        self._sum = self._total = 0.0

    def follow(self) -> Series:
        """The average of all values there are by now; only new ones are computed."""
        source = self.source
        if source.cuts != self._cuts:  # a resumed attempt repeats steps
            self._begin()
        for at in range(len(self._series), len(source)):
            self._series.append(source.steps[at], self._add(source.values[at]))
        return self._series

    def _add(self, value: float) -> float:
        if not math.isfinite(value):
            return math.nan
        self._sum = self.weight * self._sum + (1 - self.weight) * value
        self._total = self.weight * self._total + 1 - self.weight
        return self._sum / self._total


class Smoothing:
    """The averages of the series on a screen."""

    def __init__(self) -> None:
        self._known: dict[int, Average] = {}  # by the identity of the series

    def of(self, series: Series, weight: float) -> Series:
        """The average of a series."""
        known = self._known.get(id(series))
        if known is None or known.weight != weight:
            self._known.pop(id(series), None)
            if len(self._known) >= _MOST:
                del self._known[next(iter(self._known))]
            known = self._known[id(series)] = Average(series, weight)
        return known.follow()
