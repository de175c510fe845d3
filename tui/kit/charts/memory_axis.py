"""Places memory samples on the axis of the steps."""

import math
import statistics
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

from launcher.core.format import duration
from tui.kit.charts.axes import SpentAxis, time_stride
from tui.kit.drawing.scale import stride

_RECENT = 20  # steps whose median duration predicts the current one's
_ALMOST = 0.99  # a step that takes longer than usual does not become the next one


class SampleAxis:
    """Maps sample indices to fractions of steps: 3.5 is the middle of step 4, which ends at 4.

    Samples before the first step belong to the previous step; no sample is right of `end`. Without steps, x is seconds
    since the first sample.
    """

    unit = 0.0

    def __init__(
        self, times: Sequence[float], steps: Sequence[int], step_times: Sequence[float], end: float = math.inf
    ) -> None:
        """`times`: of the samples. `step_times`: ends of `steps`. Both ascend."""
        self._times, self._steps, self._ends, self._end = times, steps, step_times, end
        durations = [b - a for a, b in pairwise(step_times[-_RECENT:]) if b > a]
        self._usual = statistics.median(durations) if durations else 60.0

    def place(self, step: int) -> float:
        """x of the sample of this index."""
        t = self._times[step]
        if not self._steps:
            return t - self._times[0]
        after = bisect_left(self._ends, t)
        if after == len(self._ends):
            x = self._steps[-1] + min((t - self._ends[-1]) / self._usual, _ALMOST)
        else:
            (first, begin), (last, end) = self._stretch(after)
            x = first + (last - first) * (t - begin) / (end - begin) if end > begin else last
        return min(max(x, 0.0), self._end)

    def step_at(self, x: float) -> int:
        """The index of the first sample at or after `x`."""
        return bisect_left(self._times, self._time(x))

    def sample_of(self, step: int) -> int | None:
        """The index of the first sample after a step; None if the run lacks that step."""
        found = bisect_left(self._steps, step)
        if found == len(self._steps) or self._steps[found] != step or not self._times:
            return None
        return min(bisect_left(self._times, self._ends[found]), len(self._times) - 1)

    def ends(self) -> list[int]:
        """Per step the index of the first sample after it."""
        return [bisect_left(self._times, end) for end in self._ends]

    def label(self, x: float) -> str:
        return f"{x:.0f}" if self._steps else duration(x)

    def stride(self, least: float) -> float:
        return stride(least) if self._steps else time_stride(least)

    def _time(self, x: float) -> float:
        if not self._steps:
            return self._times[0] + x if self._times else x
        if x <= 0:
            return -math.inf
        beyond = x - self._steps[-1]
        if x > self._end or beyond > _ALMOST:
            return math.inf
        if beyond > 0:
            return self._ends[-1] + beyond * self._usual
        (first, begin), (last, end) = self._stretch(bisect_left(self._steps, x))
        return begin + (x - first) / (last - first) * (end - begin)

    def _stretch(self, after: int) -> tuple[tuple[float, float], tuple[float, float]]:
        """Step and time at both ends of the interval that ends with the step of this index."""
        end = (self._steps[after], self._ends[after])
        if after:
            return (self._steps[after - 1], self._ends[after - 1]), end
        return (self._steps[0] - 1, min(self._times[0], end[1])), end


class SpentSamples:
    """Maps sample indices to the time or tokens spent by then."""

    unit = 0.0

    def __init__(self, samples: SampleAxis, spent: SpentAxis) -> None:
        self._samples, self._spent = samples, spent

    def place(self, step: int) -> float:
        """x of the sample of this index."""
        return self._spent.within(self._samples.place(step))

    def step_at(self, x: float) -> int:
        """The index of the first sample at or after `x`."""
        return self._samples.step_at(self._spent.moment(x))

    def label(self, x: float) -> str:
        return self._spent.label(x)

    def stride(self, least: float) -> float:
        return self._spent.stride(least)
