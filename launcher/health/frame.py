"""One step, as the rules receive it."""

from collections.abc import Mapping, Sequence, Set
from math import isfinite, nan

from launcher.health import keys

_SAME = 1e-9  # a range this small, as a share of the values, is no range


class Frame:
    """The metrics of one step.

    `count`: number of the training step since the first one seen, from 1 (a resumed run starts at a later `step`). `t`:
    unix time when it was read. `bad`: keys with non-finite values. `same_scores`: whether all responses have equal
    scores. `no_signal`: whether scores or advantages are equal, so that nothing is learned. Both are None if unknown.
    `summed`, `shares`: see RunConfig.
    """

    def __init__(
        self,
        step: int,
        count: int,
        data: Mapping[str, float],
        three_decimals: bool = False,
        t: float | None = None,
        summed: float | None = None,
        shares: Set[str] = frozenset(),
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
        if shares and not shares.isdisjoint(data):
            self._figures = {**data, **dict.fromkeys(shares)}
        if self.bad or not scales.keys().isdisjoint(data):
            scaled = {key: data[key] * scale for key, scale in scales.items() if key in data}
            finite = {key: x if isfinite(x) else None for key, x in scaled.items()}
            self._figures = {**self._figures, **finite, **dict.fromkeys(self.bad)}
        self.same_scores = self._equal(keys.SCORE_MAX, keys.SCORE_MIN)
        flat = self.same_scores, self._equal(keys.ADVANTAGE_MAX, keys.ADVANTAGE_MIN)
        self.no_signal = None if flat == (None, None) else any(flat)

    def get(self, names: Sequence[str]) -> float | None:
        """The value of the first present key of `names`, in its current unit; None if missing or not finite.

        NUM-1 reports non-finite values. Other rules cannot compare them and wait for the next value.
        """
        for name in names:
            if name in self._figures:
                return self._figures[name]
        return None

    def _equal(self, high: Sequence[str], low: Sequence[str]) -> bool | None:
        top, bottom = self.get(high), self.get(low)
        return None if top is None or bottom is None else top - bottom <= _SAME * max(abs(top), abs(bottom))
