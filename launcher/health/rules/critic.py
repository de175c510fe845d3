"""CRIT-1: the critic of PPO."""

import math

from launcher.core.format import number
from launcher.health import keys
from launcher.health.clauses import POSITIVE, Clause, Measure, Values, ladder, rungs, worst
from launcher.health.frame import Frame
from launcher.health.metric import KEPT
from launcher.health.rules.base import Rule, Setup, reference, warming
from launcher.health.state import Reading
from launcher.record.levels import CRITICAL, NOTICE, WARN

_WARM = 20  # the loss falls from its start
_EXPLAINED_FROM = 31
_STILL_FALLS = 0.9  # the newest ten of the last forty losses, to the oldest ten
_BEYOND_NOISE = 1.5
_LOSS = Measure(metric=keys.VALUE_LOSS, span=POSITIVE)
_SHARE = Measure("median of 5 steps", keys.EXPLAINED, (-math.inf, 1.0), fixed=True)


class CriticFit(Rule):
    """Compares the value loss with its usual and the range of rewards; judges the explained variance (CRIT-1)."""

    id = "CRIT-1"
    worse = 1
    needs = (keys.VALUE_LOSS,)
    also = (keys.EXPLAINED,)
    reads = ("VALUE_LOSS", "EXPLAINED")

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._once = False  # whether the critic has ever explained something

    def rate(self, frame: Frame, x: float) -> Reading:
        (loss, explained), reward = self.models, self.reward
        middle = explained.median(5)
        self._once = self._once or middle > 0
        if loss.count <= _WARM:
            return warming(_WARM + 1 - loss.count)
        usual, past = loss.low, reference(loss)

        def message(reading: Reading) -> str:
            if reading.about(0, 1):
                return f"value loss {number(x)} vs {past}"
            fresh = learns and middle < self.limits.raising["warn.explained"]
            still = ", but the value loss is still falling" if fresh else ""
            return f"explained variance {number(middle)} (median of 5){still}"

        nothing_to_explain = reward.count and not reward.span  # SIG-1 says so
        if (loss.count < _EXPLAINED_FROM and not self._once) or math.isnan(middle) or nothing_to_explain:
            return self.compare(message, lambda limits: [self._loss(limits, x, usual)], loss)
        learns = middle < self.limits.raising["notice.explained"] and self._learns()
        reading = self.compare(
            message, lambda limits: [self._loss(limits, x, usual), self._share(limits, middle, learns)]
        )
        if worst(reading.raising[:1]) >= WARN:
            loss.refuse()
        return reading

    def _loss(self, limits: Values, x: float, usual: float) -> Clause:
        span = self.reward.span
        above = rungs(limits, ">", lambda at: max(at["ratio"] * usual, at["span"] * span * span))
        return x, self.weighed(above), _LOSS

    def _share(self, limits: Values, middle: float, learns: bool) -> Clause:
        """While the value loss falls this is a NOTICE at most.

        A fresh critic begins far below zero where rewards hardly vary, and needs longer than 31 steps.
        """
        most = NOTICE if learns else CRITICAL
        below = self.weighed([rung for rung in ladder(limits, "explained", "<") if rung[0] <= most])
        return middle, below, _SHARE

    def _learns(self) -> bool:
        """Whether the loss has fallen, and by more than its noise: medians of ten differ by 0.6 of that of a step."""
        loss = self.models[0]
        oldest = min(loss.count, KEPT) - 10
        before, now = loss.median(10, oldest), loss.median(10)
        return now < _STILL_FALLS * before and before - now > _BEYOND_NOISE * loss.noise
