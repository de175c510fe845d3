"""Median stopping: a run whose reward is behind that of the other runs of its sweep may end early."""

import math
import statistics
from bisect import bisect_right
from itertools import accumulate

from launcher.core.format import number
from launcher.metrics.store import Series
from launcher.record.layout import RunDir, all_runs
from launcher.record.note import read_note
from launcher.runs.watch.scores import Scores

FIRST = 10  # step from which a run is compared
EVERY = 5  # steps; all run directories are looked through
OTHERS = 3  # runs that must have come as far
_SMOOTH = 5  # steps whose mean is one value of the reward


class Behind:
    """Compares a run with the others that have the tag of its sweep.

    The median stopping rule (Golovin et al., Google Vizier, KDD 2017, section 3.2.2): a run is behind when its best
    reward up to a step is below the median of the other runs' mean rewards up to this step.
    """

    def __init__(self, run: RunDir, id: str, tag: str) -> None:
        """Without a tag there is nothing to compare with."""
        self._id, self._tag = id, tag
        self._own = Scores(run)
        self._others: dict[str, Scores] = {}

    def reason(self, step: int) -> str | None:
        """Why the run should end after this step, or None."""
        if not self._tag or step < FIRST or step % EVERY:
            return None
        for run in all_runs():
            if run.id not in self._others and run.id != self._id and self._tag in read_note(run.note).tags:
                self._others[run.id] = Scores(run)
        for each in (self._own, *self._others.values()):
            each.poll()
        best = _best(self._own.series, step)
        means = [mean for each in self._others.values() if (mean := _mean(each.series, step)) is not None]
        if best is None or len(means) < OTHERS or best >= (middle := statistics.median(means)):
            return None
        return f"best reward {number(best)}, below {number(middle)}, the median of {len(means)} runs with #{self._tag}"


def _finite(series: Series, step: int) -> list[float]:
    return [value for value in series.values[: bisect_right(series.steps, step)] if math.isfinite(value)]


def _mean(series: Series, step: int) -> float | None:
    """The mean reward up to a step of a run that has come as far."""
    values = _finite(series, step)
    return statistics.fmean(values) if values and series.steps[-1] >= step else None


def _best(series: Series, step: int) -> float | None:
    """The highest mean of five steps in a row."""
    values = _finite(series, step)
    sums = [0.0, *accumulate(values)]
    means = [(sums[end] - sums[end - _SMOOTH]) / _SMOOTH for end in range(_SMOOTH, len(sums))]
    return max(means, default=None)
