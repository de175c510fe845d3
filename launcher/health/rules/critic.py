"""CRIT-1: the critic of PPO."""

import math
from collections.abc import Sequence

from launcher.core.format import number
from launcher.health import keys
from launcher.health.clauses import POSITIVE, Clause, Measure, Values, ladder, rungs, worst
from launcher.health.frame import Frame
from launcher.health.rules.base import Rule, Setup
from launcher.health.state import Reading
from launcher.record.levels import CRITICAL, NOTICE, WARN

_WARM = 20  # the loss falls from its start
_EXPLAINED_FROM = 31
_BEGUN = {"own": 5, "risen": 3}  # losses from which it is known whether the first one was only the start
_RISEN = 1.2  # multiple of the first loss that a learning critic does not exceed
_LOSS = Measure(metric=keys.VALUE_LOSS, span=POSITIVE)
_OPENING = Measure("highest of steps 1 to 3 while the reward has not risen", span=POSITIVE)
_STAYS = Measure("median of 3 steps", keys.VALUE_LOSS, POSITIVE)
_SHARE = Measure("median of 5 steps", keys.EXPLAINED, (-math.inf, 1.0), fixed=True)


class CriticFit(Rule):
    """Compares the value loss with its usual and the range of rewards; judges the explained variance (CRIT-1)."""

    id = "CRIT-1"
    worse = 1
    needs = (keys.VALUE_LOSS,)
    also = (keys.EXPLAINED,)
    reads = ("VALUE_LOSS", "EXPLAINED", "OPENING_VALUE")

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._once = False  # whether the critic ever explained something
        self._own_limit = "own"

    def rate(self, frame: Frame, x: float) -> Reading:
        (loss, explained, opening), reward = self.models, self.reward
        most = opening.now if reward.flat else math.nan
        middle = explained.median(5)
        self._once = self._once or middle > 0
        if loss.count <= _WARM and x > _RISEN * loss.origin:
            self._own_limit = "risen"
        if loss.count < (needed := _BEGUN[self._own_limit]):
            return self.warming(needed - loss.count)
        usual, past = loss.low, self.reference(loss)

        def message(reading: Reading) -> str:
            if reading.level and reading.about(-1):
                times = f"value loss {number(most)}× the squared range of rewards"
                return f"{times}; in the first {self.config.numbering.count(3)}; the reward has not risen since"
            if loss.count <= _WARM or (reading.level and reading.about(0, 1)):
                span = number(reward.span)
                return f"value loss {number(loss.median(3))}, rewards differ by {span}; median of 3"
            if reading.about(1, 2):
                return f"value loss {number(x)} vs {past()}"
            fresh = learns and middle < self.limits.raising["warn.explained"]
            still = "; the value loss is still falling" if fresh else ""
            return f"explained variance {number(middle)}; median of 5{still}"

        nothing_to_explain = reward.count and not reward.span  # flagged by SIG-1
        early = (loss.count < _EXPLAINED_FROM and not self._once) or math.isnan(middle) or nothing_to_explain
        learns = not early and middle < self.limits.raising["notice.explained"] and loss.falls

        def clauses(limits: Values) -> Sequence[Clause]:
            found = [self._own(limits)]
            if not early or loss.count > _WARM:
                found.append(self._loss(limits, x, usual))
            if not early:
                found.append(self._share(limits, middle, learns))
            return [*found, (most, [(WARN, ">", limits["warn.opening"])], _OPENING)]

        reading = self.compare(message, clauses)
        if worst(reading.raising[:2]) >= WARN:
            loss.refuse()
        return reading

    def _own(self, limits: Values) -> Clause:
        """The clause on the scale of the rewards: a far larger loss after five steps is bad from the first value on.

        The largest loss of a healthy critic in tests/data/bank is 3 times the squared range of rewards; if it rose
        above its first value, half of the squared range.
        """
        span = self.reward.span
        rungs = self.weighed(ladder(limits, self._own_limit, unit=span * span))
        return self.models[0].median(3) if span > 0 else math.nan, rungs, _STAYS

    def _loss(self, limits: Values, x: float, usual: float) -> Clause:
        span = self.reward.widest
        above = rungs(limits, ">", lambda at: max(at["ratio"] * usual, at["span"] * span * span))
        return x, self.weighed(above), _LOSS

    def _share(self, limits: Values, middle: float, learns: bool) -> Clause:
        """A NOTICE at most while the value loss falls.

        A fresh critic starts far below zero if rewards hardly vary, and needs more than 31 steps.
        """
        most = NOTICE if learns else CRITICAL
        below = self.weighed([rung for rung in ladder(limits, "explained", "<") if rung[0] <= most])
        return middle, below, _SHARE
