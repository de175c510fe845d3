"""x axes other than steps: training time, and tokens."""

import math
from array import array
from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise

from launcher.core.format import duration, number
from launcher.metrics.store import SeriesStore
from launcher.record.state import RunState
from tui.kit.drawing.scale import step_limit, stride

TOKENS_KEY = "perf/total_num_tokens"
_MOST = 1e15  # tokens that no step has
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_ENDS = (10, _MINUTE, 10 * _MINUTE, _HOUR, 6 * _HOUR)  # steps of an axis end
_MANY = 60  # maximum number of such steps, except the last
_STRIDES = [n * unit for unit in (1, _MINUTE) for n in (1, 2, 5, 10, 20, 30)]  # between ticks
_STRIDES += [n * _HOUR for n in (1, 2, 3, 6, 12)]
_LONGEST = 30 * _DAY  # seconds that no step takes


class SpentAxis:
    """x is the time or tokens spent up to a step: `spent` grows with `steps`. Charts have no points between steps."""

    unit = 0.0

    def __init__(
        self,
        steps: Sequence[int],
        spent: Sequence[float],
        label: Callable[[float], str],
        stride: Callable[[float], float],
    ) -> None:
        self.steps, self.spent, self.label, self.stride = steps, spent, label, stride

    @property
    def end(self) -> float:
        return self.spent[-1]

    def place(self, step: int) -> float:
        at = bisect_left(self.steps, step)
        return self.spent[min(at, len(self.spent) - 1)]

    def step_at(self, x: float) -> int:
        at = bisect_left(self.spent, x)
        return self.steps[at] if at < len(self.steps) else self.steps[-1] + 1

    def within(self, step: float) -> float:
        """Time or tokens spent up to a moment inside of a step: 3.5 is the middle of step 4."""
        (first, before), (last, spent) = self._stretch(bisect_left(self.steps, step))
        return before + (spent - before) * max(step - first, 0.0) / (last - first)

    def moment(self, x: float) -> float:
        """The moment, as a fraction of steps, when `x` was spent; 0 at the start of the run."""
        (first, before), (last, spent) = self._stretch(bisect_left(self.spent, x))
        if x <= 0:
            return 0.0
        return first + (last - first) * (x - before) / (spent - before) if spent > before else last

    def _stretch(self, at: int) -> tuple[tuple[int, float], tuple[int, float]]:
        """Step and amount at both ends of the interval that ends with the step of this index.

        The interval after the last step equals the last one.
        """
        if at == 0:
            return (self.steps[0] - 1, 0.0), (self.steps[0], self.spent[0])
        if at < len(self.steps):
            return (self.steps[at - 1], self.spent[at - 1]), (self.steps[at], self.spent[at])
        before = self.spent[-2] if len(self.spent) > 1 else 0.0
        newest, spent = self.steps[-1], self.spent[-1]
        return (newest, spent), (newest + 1, spent + spent - before)


def time_axis(store: SeriesStore) -> SpentAxis | None:
    """Seconds of training, without pauses before resumed attempts. None if the log has no times."""
    seams = set(store.seams)
    spent, total, usual = array("d", [0.0]), 0.0, 0.0
    for step, (before, now) in zip(store.steps[1:], pairwise(store.times), strict=True):
        if step not in seams and 0 <= now - before < _LONGEST:  # otherwise a pause, or a changed clock
            usual = now - before
        total += usual
        spent.append(total)
    return SpentAxis(store.steps, spent, _clock, time_stride) if store.steps and total > 0 else None


def token_axis(store: SeriesStore) -> SpentAxis | None:
    """Tokens trained on; None if not logged."""
    series = store.get(TOKENS_KEY)
    if series is None:
        return None
    counts = (value if 0 < value < _MOST else 0.0 for value in series.values)  # nan is 0, too
    spent = array("d", accumulate(counts))
    return SpentAxis(series.steps, spent, number, stride) if spent and spent[-1] > 0 else None


def time_limit(seconds: float) -> float:
    """The right end of a live run's time axis: a round duration with little room."""
    unit = next((unit for unit in _ENDS if seconds <= _MANY * unit), _ENDS[-1])
    return float(step_limit(math.ceil(seconds / unit), None) * unit)


def time_stride(least: float) -> float:
    """A round tick distance for a time axis, at least `least` seconds."""
    return next((rung for rung in _STRIDES if rung >= least), math.ceil(least / _DAY) * _DAY)


def _clock(seconds: float) -> str:
    """A duration without trailing zeros: `2h`, not `2h 00m`."""
    return duration(seconds).removesuffix(" 00s").removesuffix(" 00m").removesuffix(" 0h")


def plan(state: RunState, newest: int | None) -> int | None:
    """The last step on a run's axis: the planned one while it lives, otherwise its newest."""
    return state.total if state.live else newest
