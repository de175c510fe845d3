"""One step as the rules get it."""

from collections.abc import Mapping, Sequence
from math import isfinite, nan

from launcher.health import keys

_SAME = 1e-9  # a range this small, as a share of the values, is no range


class Frame:
    """The figures of one step.

    `count` numbers the training steps seen so far from 1 (a resumed run's first `step` is not 1). `t` is the unix time
    at which the step was seen. `bad` are the keys whose value is not finite. `same_scores`: whether all responses have
    the same score. `no_signal`: whether the step teaches nothing, as scores or advantages are equal. Both are None
    where nobody knows. `summed`: that of RunConfig.
    """

    def __init__(
        self,
        step: int,
        count: int,
        data: Mapping[str, float],
        three_decimals: bool = False,
        t: float | None = None,
        summed: float | None = None,
    ) -> None:
        self.step = step
        self.count = count
        self.data = data
        self.three_decimals = three_decimals
        self.t = t
        self.bad: list[str] = []
        if not isfinite(sum(data.values())):  # nearly never
            self.bad = [key for key, value in data.items() if not isfinite(value)]
        self._figures: Mapping[str, float | None] = data
        scales = keys.SCALE
        if summed is not None:
            scales = {**scales, **dict.fromkeys(keys.SUMMED, summed / (data.get(keys.LENGTH[0]) or nan))}
        if self.bad or not scales.keys().isdisjoint(data):
            scaled = {key: data[key] * scale for key, scale in scales.items() if key in data}
            finite = {key: x if isfinite(x) else None for key, x in scaled.items()}
            self._figures = {**data, **finite, **dict.fromkeys(self.bad)}
        self.same_scores = self._equal(keys.SCORE_MAX, keys.SCORE_MIN)
        flat = self.same_scores, self._equal(keys.ADVANTAGE_MAX, keys.ADVANTAGE_MIN)
        self.no_signal = None if flat == (None, None) else any(flat)

    def get(self, names: Sequence[str]) -> float | None:
        """The value under the first of `names` that is present, in its present unit; None when missing or not finite.

        A non-finite value is NUM-1's to report. The other rules cannot compare it with anything, so they keep
        what they know and wait for the next figure.
        """
        for name in names:
            if name in self._figures:
                return self._figures[name]
        return None

    def _equal(self, high: Sequence[str], low: Sequence[str]) -> bool | None:
        top, bottom = self.get(high), self.get(low)
        return None if top is None or bottom is None else top - bottom <= _SAME * max(abs(top), abs(bottom))
