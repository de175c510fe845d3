"""GRAD-1, GRAD-2, LOSS-1 and LR-1: gradients, policy loss and learning rate."""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace

from launcher.core.format import number
from launcher.health import keys
from launcher.health.clauses import POSITIVE, Clause, Rung, ladder
from launcher.health.frame import Frame
from launcher.health.rules.base import Rule, Setup, eased, lasting, not_judged, warming
from launcher.health.series import Baseline, log_sigma, median, swing
from launcher.health.state import Reading
from launcher.record.levels import FLAGS, Level

_ROUNDING = 0.001  # with one update a batch the policy loss is 0 but for rounding, which is no scale
_THREE_DECIMALS = 0.0005  # what a printed 0.000 may hide


class GradientPeaks(Rule):
    """The gradient norm against its usual, on a logarithmic scale: single spikes are normal and clipped.

    Steps that teach nothing have no gradient to compare with.
    """

    id = "GRAD-1"
    name = "Gradient peaks"
    family = "gradient"
    needs = (keys.GRADIENT,)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._usual = Baseline(30)
        self._flagged: deque[bool] = deque(maxlen=5)

    def judge(self, frame: Frame) -> Reading | None:
        x = frame.get(keys.GRADIENT)
        if x is None or frame.no_signal():
            return None
        if len(self._usual) < 10:
            self._usual.add(x)
            return warming(11 - len(self._usual))
        usual = self._usual.median
        reading = self.compare(
            f"grad norm {number(x)} vs usual {number(usual)}",
            lambda limits: self._peaks(limits, x, usual, frame.signals.reward.rises),
        )
        self._flagged.append(reading.raw > Level.OK)
        self._usual.add(x, refused=reading.raw >= Level.WARN)
        if not reading.raw:
            return reading
        return replace(reading, message=f"{reading.message}, {sum(self._flagged)} of the last 5 steps")

    def _peaks(self, limits: Mapping[str, float], x: float, usual: float, pays: bool) -> Sequence[Clause]:
        if not usual > 0:
            return ()
        noise = log_sigma(self._usual.values)
        found = []
        for level, name in FLAGS:
            beyond = self.limits.k * swing(limits[f"{name}.sigmas"], noise)
            found.append(Rung(level, ">", max(limits[f"{name}.ratio"], beyond) * usual))
        return [Clause(x, eased(found, pays), metric=keys.GRADIENT, span=POSITIVE)]


class VanishingGradient(Rule):
    """Gradient norms that have all but vanished."""

    id = "GRAD-2"
    name = "Vanishing gradient"
    family = "gradient"
    needs = (keys.GRADIENT,)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._first: list[float] = []
        self._base = math.nan
        self._last: deque[float] = deque(maxlen=3)

    def judge(self, frame: Frame) -> Reading | None:
        x = frame.get(keys.GRADIENT)
        if x is None or frame.no_signal():  # no signal, no gradient: SIG-1 says so
            return None
        self._last.append(_THREE_DECIMALS if x == 0 and frame.three_decimals else x)
        if len(self._first) < 10:
            self._first.append(x)
            self._base = median(self._first)
            if len(self._first) < 10:
                return warming(10 - len(self._first))
        return self.compare(f"grad norm {number(x)}, first steps {number(self._base)}", self._vanished)

    def _vanished(self, limits: Mapping[str, float]) -> Sequence[Clause]:
        rungs = [*ladder(limits, "ratio", "<", unit=self._base), Rung(Level.CRITICAL, "<=", 0.0)]
        return [Clause(max(self._last), rungs, "highest of 3 steps", keys.GRADIENT, POSITIVE)]


class PolicyLoss(Rule):
    """The size of the policy loss; its sign and a slow drift mean nothing."""

    id = "LOSS-1"
    name = "Policy loss"
    family = "policy loss"
    needs = (keys.POLICY_LOSS,)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._usual = Baseline(20)

    def judge(self, frame: Frame) -> Reading | None:
        x = frame.get(keys.POLICY_LOSS)
        if x is None:
            return None
        size = abs(x)
        if not self.config.token_mean and len(self._usual) < 10:
            self._usual.add(size)
            return warming(11 - len(self._usual))
        figure, usual = "" if x >= 0 else "size", self._usual.median
        reading = self.compare(
            f"policy loss {number(x)}",
            lambda limits: [
                Clause(size, self._limits(limits, usual), figure, keys.POLICY_LOSS, POSITIVE, self.config.token_mean)
            ],
        )
        self._usual.add(size, refused=reading.raw >= Level.WARN)
        return reading

    def _limits(self, limits: Mapping[str, float], usual: float) -> Sequence[Rung]:
        if self.config.token_mean:
            return ladder(limits, "value")
        return ladder(limits, "ratio", ">", unit=max(usual, _ROUNDING))


class LearningRate(Rule):
    """A learning rate of exactly 0 between warm-up and the end of the run."""

    id = "LR-1"
    name = "Learning rate"
    family = "learning rate"
    needs = (keys.LEARNING_RATE,)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._run = 0

    def judge(self, frame: Frame) -> Reading | None:
        x = frame.get(keys.LEARNING_RATE)
        if x is None:
            return None
        if frame.three_decimals:
            return not_judged("the log rounds to 3 decimals")
        ending = self.config.total_steps is not None and frame.step > self.config.total_steps - 2
        counts = frame.count >= 2 and frame.step > self.config.warmup_steps and not ending
        self._run = self._run + 1 if x == 0 and counts else 0
        message = f"learning rate {number(x)}"
        if self._run:
            message = f"learning rate is 0 for {self._run} step{'s' if self._run != 1 else ''}"
        reading = self.compare(
            message, lambda limits: [Clause(self._run, ladder(limits, "steps"), "steps at 0", span=POSITIVE)]
        )
        return lasting(reading) if self._run else reading
