"""CRIT-1, CRIT-2 and CLIP-2: the critic of PPO."""

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import replace

from launcher.core.format import number
from launcher.health import keys
from launcher.health.clauses import POSITIVE, SHARE, Clause, ladder, rungs
from launcher.health.frame import Frame
from launcher.health.rules.base import PastRule, Rule, Setup, warming, weighed
from launcher.health.series import median, sigma
from launcher.health.signals import Signals
from launcher.health.state import Reading
from launcher.record.levels import Level

_WARM = 20  # the loss falls from its start
_EXPLAINED_FROM = 31
_NOTHING = 0.05  # explained variance
_STILL_FALLS = 0.9  # the newest ten of the last fifty losses, to the oldest ten
_BEYOND_NOISE = 1.5


class CriticFit(PastRule):
    """Compares the value loss with its usual and the range of rewards; judges the explained variance (CRIT-1)."""

    id = "CRIT-1"
    worse = 1
    needs = (keys.VALUE_LOSS,)
    also = (keys.EXPLAINED,)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._count = 0
        self._losses: deque[float] = deque(maxlen=50)
        self._explained: deque[float] = deque(maxlen=5)
        self._once = False  # whether the critic has ever explained something

    def not_applicable(self) -> str | None:
        return f"no critic in this run ({self.config.estimator})" if self.config.has_critic is False else None

    def rate(self, frame: Frame, x: float) -> Reading:
        explained, reward = frame.get(keys.EXPLAINED), frame.signals.reward
        self._count += 1
        self._losses.append(x)
        if explained is not None and not frame.same_scores():  # of equal returns it would be far below 0
            self._explained.append(explained)
            self._once = self._once or median(self._explained) > 0
        if self._count <= _WARM:
            self._usual.add(x)
            return warming(_WARM + 1 - self._count)
        usual, signals = self._usual.median, frame.signals
        usual = min(usual, self._usual.before)  # a slow rise
        loss = self.compare(
            f"value loss {number(x)} vs usual {number(usual)}", lambda limits: [self._loss(limits, x, usual, signals)]
        )
        self._usual.add(x, refused=loss.raw >= Level.WARN)
        nothing_to_explain = reward.count and not reward.span  # SIG-1 says so
        if (self._count < _EXPLAINED_FROM and not self._once) or not self._explained or nothing_to_explain:
            return loss
        middle, learns = median(self._explained), self._learns()
        both = self.compare(
            loss.message,
            lambda limits: [self._loss(limits, x, usual, signals), self._share(limits, middle, signals, learns)],
        )
        if both.raw == loss.raw:
            return both
        fresh = learns and middle < self.limits.raising["warn.explained"]
        still = ", but the value loss is still falling" if fresh else ""
        return replace(both, message=f"explained variance {number(middle)}{still}")

    @staticmethod
    def _loss(limits: Mapping[str, float], x: float, usual: float, signals: Signals) -> Clause:
        span = signals.reward.span
        above = rungs(limits, ">", lambda at: max(at("ratio") * usual, at("span") * span * span))
        return Clause(x, weighed(above, signals), metric=keys.VALUE_LOSS, span=POSITIVE)

    @staticmethod
    def _share(limits: Mapping[str, float], middle: float, signals: Signals, learns: bool) -> Clause:
        """While the value loss falls this is a NOTICE at most.

        A fresh critic begins far below zero where rewards hardly vary, and needs longer than 31 steps.
        """
        most = Level.NOTICE if learns else Level.CRITICAL
        below = [rung for rung in ladder(limits, "explained", "<") if rung.level <= most]
        below = weighed(below, signals)
        return Clause(middle, below, "median of 5 steps", keys.EXPLAINED, (-math.inf, 1.0), fixed=True)

    def _learns(self) -> bool:
        """Whether the loss has fallen, and by more than its noise: medians of ten differ by 0.6 of that of a step."""
        losses = list(self._losses)
        before, now = median(losses[:10]), median(losses[-10:])
        return now < _STILL_FALLS * before and before - now > _BEYOND_NOISE * sigma(losses)


class IdleCritic(Rule):
    """Counts steps on which the critic explains nothing while rewards differ (CRIT-2)."""

    id = "CRIT-2"
    needs = (keys.EXPLAINED,)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._last: deque[float] = deque(maxlen=5)
        self._steps = 0

    def rate(self, frame: Frame, x: float) -> Reading | None:
        if frame.same_scores():
            return None
        self._last.append(x)
        best = max(self._last)
        self._steps = self._steps + 1 if best < _NOTHING else 0
        message = f"explained variance below {number(_NOTHING)} for {self._steps} steps"
        return self.compare(
            message if self._steps else f"explained variance {number(best)}",
            lambda limits: [Clause(self._steps, ladder(limits, "steps"), "steps that explain nothing", span=POSITIVE)],
        )


class ClippedValues(Rule):
    """Judges the share of tokens whose value update is clipped (CLIP-2)."""

    id = "CLIP-2"
    needs = (keys.VALUES_CLIPPED,)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._last: deque[float] = deque(maxlen=5)

    def rate(self, frame: Frame, x: float) -> Reading:
        self._last.append(x)
        if len(self._last) < 5:
            return warming(5 - len(self._last))
        share = median(self._last)
        return self.compare(
            f"{number(100 * share)} % of value updates are clipped",
            lambda limits: [Clause(share, ladder(limits, "share", ">"), "median of 5", keys.VALUES_CLIPPED, SHARE)],
        )
