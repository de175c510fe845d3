"""GRAD-1, GRAD-2, LOSS-1 and LR-1: gradients, policy loss and learning rate."""

import math
from collections import deque
from collections.abc import Mapping, Sequence

from launcher.format import number
from launcher.health import keys
from launcher.health.frame import Frame
from launcher.health.rules.base import Rule, Setup, ladder, lasting, not_judged, warming
from launcher.health.series import Baseline, median, sigma
from launcher.health.state import Reading
from launcher.record.levels import FLAGS, Bound, Level, worst

_TINY = 1e-300  # stands in for a norm of 0 in logarithms
_THREE_DECIMALS = 0.0005  # what a printed 0.000 may hide


class GradientPeaks(Rule):
    """The gradient norm against its usual, on a logarithmic scale: single spikes are normal and clipped."""

    id = "GRAD-1"
    question = "Are the gradients calm?"
    family = "gradient"
    needs = (keys.GRADIENT,)
    on_chart = True

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._usual = Baseline(30)
        self._flagged: deque[bool] = deque(maxlen=5)

    def weigh(self, x: float, frame: Frame) -> Reading:
        if len(self._usual) < 10:
            self._usual.add(x)
            return warming(11 - len(self._usual))
        usual, raw = self._usual.median, worst(x, self.bounds(self.limits.raising))
        self._flagged.append(raw > Level.OK)
        self._usual.add(x, refused=raw >= Level.WARN)
        message = f"grad norm {number(x)} vs usual {number(usual)}"
        if raw > Level.OK:
            message += f", {sum(self._flagged)} of the last 5 steps"
        return Reading(raw, message)

    def bounds(self, limits: Mapping[str, float]) -> Sequence[Bound]:
        usual = self._usual.median
        if not usual > 0:
            return ()
        noise = sigma([math.log(max(value, _TINY)) for value in self._usual.values])
        found = []
        for level, name in FLAGS:
            swing = self.limits.k * math.exp(min(limits[f"{name}.sigmas"] * noise, 700))
            found.append(Bound(level, ">", max(limits[f"{name}.ratio"], swing) * usual))
        return found


class VanishingGradient(Rule):
    """Gradient norms that have all but vanished."""

    id = "GRAD-2"
    question = "Do updates still do something?"
    family = "gradient"
    needs = (keys.GRADIENT,)
    on_chart = True

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._first: list[float] = []
        self._base = math.nan
        self._last: deque[float] = deque(maxlen=3)

    def weigh(self, x: float, frame: Frame) -> Reading:
        self._last.append(_THREE_DECIMALS if x == 0 and frame.three_decimals else x)
        if len(self._first) < 10:
            self._first.append(x)
            self._base = median(self._first)
            if len(self._first) < 10:
                return warming(10 - len(self._first))
        return self.compare(max(self._last), f"grad norm {number(x)}, first steps {number(self._base)}")

    def bounds(self, limits: Mapping[str, float]) -> Sequence[Bound]:
        return [*ladder(limits, "ratio", "<", unit=self._base), Bound(Level.CRITICAL, "<=", 0.0)]


class PolicyLoss(Rule):
    """The size of the policy loss; its sign and a slow drift mean nothing."""

    id = "LOSS-1"
    question = "Is the policy loss in range?"
    family = "policy loss"
    needs = (keys.POLICY_LOSS,)
    on_chart = True

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._usual = Baseline(20)

    def weigh(self, x: float, frame: Frame) -> Reading:
        size = abs(x)
        if not self.config.token_mean and len(self._usual) < 10:
            self._usual.add(size)
            return warming(11 - len(self._usual))
        reading = self.compare(size, f"policy loss {number(x)}")
        self._usual.add(size, refused=reading.raw >= Level.WARN)
        return reading

    def bounds(self, limits: Mapping[str, float]) -> Sequence[Bound]:
        if self.config.token_mean:
            return ladder(limits, "value")
        return ladder(limits, "ratio", ">", unit=self._usual.median)


class LearningRate(Rule):
    """A learning rate of exactly 0 between warm-up and the end of the run."""

    id = "LR-1"
    question = "Is the learning rate above zero?"
    family = "learning rate"
    needs = (keys.LEARNING_RATE,)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._run = 0

    def weigh(self, x: float, frame: Frame) -> Reading:
        if frame.three_decimals:
            return not_judged("this log prints three decimals, so 0.000 is not 0")
        ending = self.config.total_steps is not None and frame.step > self.config.total_steps - 2
        counts = frame.count >= 2 and frame.step > self.config.warmup_steps and not ending
        self._run = self._run + 1 if x == 0 and counts else 0
        if not self._run:
            return Reading(Level.OK, f"learning rate {number(x)}")
        level = worst(self._run, ladder(self.limits.raising, "steps"))
        message = f"learning rate is 0 for {self._run} step{'s' if self._run != 1 else ''}"
        return lasting(level, message)
