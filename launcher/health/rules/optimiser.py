"""GRAD-1, GRAD-2, LOSS-1, LR-1 and DECAY-1: gradients, policy loss, learning rate and weight decay."""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace

from launcher.core.format import number
from launcher.health import keys
from launcher.health.clauses import POSITIVE, Clause, Rung, ladder, rungs
from launcher.health.frame import Frame
from launcher.health.rules.base import PastRule, Rule, Setup, lasting, not_judged, warming, weighed
from launcher.health.series import log_sigma, median, swing
from launcher.health.signals import Signals
from launcher.health.state import Reading
from launcher.record.levels import FLAGS, Level
from launcher.verl.config import ACTOR

_ROUNDING = 0.001  # with one update a batch the policy loss is 0 but for rounding, which is no scale
_THREE_DECIMALS = 0.0005  # what a printed 0.000 may hide


class GradientPeaks(PastRule):
    """Compares the gradient norm with its usual on a logarithmic scale (GRAD-1)."""

    id = "GRAD-1"
    worse = 1
    needs = (keys.GRADIENT,)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._flagged: deque[bool] = deque(maxlen=5)

    def rate(self, frame: Frame, x: float) -> Reading | None:
        if frame.no_signal():
            return None
        if (early := self.warm_up(x, 10)) is not None:
            return early
        usual = self._usual.median
        reading = self.compare(
            f"grad norm {number(x)} vs usual {number(usual)}",
            lambda limits: self._peaks(limits, x, usual, frame.signals),
        )
        self._flagged.append(reading.raw > Level.OK)
        self._usual.add(x, refused=reading.raw >= Level.WARN)
        if not reading.raw:
            return reading
        return replace(reading, message=f"{reading.message}, {sum(self._flagged)} of the last 5 steps")

    def _peaks(self, limits: Mapping[str, float], x: float, usual: float, signals: Signals) -> Sequence[Clause]:
        if not usual > 0:
            return ()
        noise, k = log_sigma(self._usual.values), self.limits.k
        peaks = rungs(limits, ">", lambda at: max(at("ratio"), k * swing(at("sigmas"), noise)) * usual, FLAGS)
        return [Clause(x, weighed(peaks, signals, signals.reward.rises), metric=keys.GRADIENT, span=POSITIVE)]


class VanishingGradient(Rule):
    """Looks for gradient norms that have almost vanished (GRAD-2)."""

    id = "GRAD-2"
    needs = (keys.GRADIENT,)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._first: list[float] = []
        self._base = math.nan
        self._last: deque[float] = deque(maxlen=3)

    def rate(self, frame: Frame, x: float) -> Reading | None:
        if frame.no_signal():  # no signal, no gradient: SIG-1 says so
            return None
        self._last.append(_THREE_DECIMALS if x == 0 and frame.three_decimals else x)
        if len(self._first) < 10:
            self._first.append(x)
            self._base = median(self._first)
            if len(self._first) < 10:
                return warming(10 - len(self._first))
        return self.compare(f"grad norm {number(x)}, first steps {number(self._base)}", self._vanished)

    def _vanished(self, limits: Mapping[str, float]) -> Sequence[Clause]:
        least = [*ladder(limits, "ratio", "<", unit=self._base), Rung(Level.CRITICAL, "<=", 0.0)]
        return [Clause(max(self._last), least, "highest of 3 steps", keys.GRADIENT, POSITIVE)]


class PolicyLoss(PastRule):
    """Judges the size of the policy loss (LOSS-1)."""

    id = "LOSS-1"
    needs = (keys.POLICY_LOSS,)

    def rate(self, frame: Frame, x: float) -> Reading:
        size = abs(x)
        if not self.config.token_mean and (early := self.warm_up(size, 10)) is not None:
            return early
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
    """Counts steps with a learning rate of exactly 0 between warm-up and the end of the run (LR-1)."""

    id = "LR-1"
    needs = (keys.LEARNING_RATE,)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._run = 0

    def rate(self, frame: Frame, x: float) -> Reading:
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


class WeightDecay(Rule):
    """Judges the share of each weight that one update removes: AdamW subtracts rate x decay x weight (DECAY-1)."""

    id = "DECAY-1"
    needs = (keys.LEARNING_RATE,)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._decay = setup.config.number(f"{ACTOR}.optim.weight_decay")

    def not_applicable(self) -> str | None:
        return "actor.optim.weight_decay is unknown" if self._decay is None else None

    def rate(self, frame: Frame, x: float) -> Reading:
        share = x * (self._decay or 0.0)
        return self.compare(
            f"each update removes {number(100 * share)} % of every weight",
            lambda limits: [Clause(share, ladder(limits, "share"), "learning rate x weight decay", fixed=True)],
        )
