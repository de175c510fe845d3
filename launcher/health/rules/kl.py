"""KL-0 to KL-4 and CLIP-1: how far the policy moves, from its reference and within a step."""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from launcher.core.format import number
from launcher.health import keys
from launcher.health.clauses import POSITIVE, SHARE, Clause, Rung, ladder
from launcher.health.frame import Frame
from launcher.health.rules.base import PastRule, Rule, Setup, not_judged, warming, weighed
from launcher.health.series import SIGMA_WINDOW, Ema, log_sigma, median, sigma, swing
from launcher.health.signals import Signals
from launcher.health.state import Reading
from launcher.record.levels import SERIOUS, Level

_THREE_DECIMALS = 0.0005  # what a printed 0.000 may hide
_BEYOND_NOISE = 2  # times the noise of the KL, from which a rise counts


class _ReferenceRule(Rule):
    """A rule on the KL to the reference policy."""

    needs: ClassVar[tuple[tuple[str, ...], ...]] = (keys.KL,)

    def not_applicable(self) -> str | None:
        if self.config.kl_in_reward is False and self.config.kl_in_loss is False:
            return "no KL logged; set use_kl_loss or use_kl_in_reward"
        return None


class PlausibleKl(_ReferenceRule):
    """Looks for a mean KL below 0 (KL-0)."""

    id = "KL-0"

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._last: deque[float] = deque(maxlen=5)

    def rate(self, frame: Frame, x: float) -> Reading:
        self._last.append(x)
        if len(self._last) < 5:
            return warming(5 - len(self._last))
        mean = sum(self._last) / 5
        message = f"mean KL of the last 5 steps is {number(mean)}"
        reading = self.compare(
            message, lambda limits: [Clause(mean, ladder(limits, "mean", "<"), "mean of 5 steps", keys.KL, fixed=True)]
        )
        return reading if reading.raw == Level.OK else replace(reading, message=f"{message}, below 0")


class KlBlowUp(_ReferenceRule, PastRule):
    """Compares the KL with fixed limits and, beyond its noise, with its first and then its recent values (KL-1)."""

    id = "KL-1"
    worse = 1

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._last: deque[float] = deque(maxlen=SIGMA_WINDOW)

    def rate(self, frame: Frame, x: float) -> Reading:
        self._last.append(x)
        noise = log_sigma(self._last)
        usual, reward = self._usual.median if self._usual.settled else self._usual.start, frame.signals.reward
        against = "" if math.isnan(usual) else f" vs usual {number(usual)}"
        shown = "< 0.0005" if x == 0 and frame.three_decimals else number(x)
        reading = self.compare(
            f"KL {shown}{against}", lambda limits: self._clauses(limits, x, usual, noise, frame.signals)
        )
        self._usual.add(x, refused=reading.raw >= (Level.NOTICE if reward.young else Level.WARN))
        return replace(reading, usual=None if math.isnan(usual) else usual)

    @staticmethod
    def _clauses(
        limits: Mapping[str, float], x: float, usual: float, noise: float, signals: Signals
    ) -> Sequence[Clause]:
        found = [Clause(x, weighed(ladder(limits, "value"), signals), metric=keys.KL, fixed=True)]
        if math.isfinite(usual):
            warn, critical = (usual * swing(limits[f"{name}.sigmas"], noise) for _, name in SERIOUS)
            jump = limits["critical.ratio"] * usual + limits["critical.offset"]
            early = limits["critical.early_ratio"] * max(usual, 0.01)
            rungs = [
                Rung(Level.WARN, ">", max(limits["warn.ratio"] * usual + limits["warn.offset"], warn)),
                Rung(Level.CRITICAL, ">", max(limits["critical.jump"], jump, critical)),
                Rung(Level.CRITICAL, ">", max(limits["critical.early"], early, critical)),
            ]
            if signals.reward.young and not signals.harm:  # every policy leaves its reference
                rungs[0] = rungs[0]._replace(level=Level.NOTICE)
            found.append(Clause(x, weighed(rungs, signals, signals.reward.rises), metric=keys.KL))
        return found


class UpdateSize(Rule):
    """Judges the KL between the policy before and after one step (KL-2)."""

    id = "KL-2"
    worse = 1
    needs = (keys.PPO_KL,)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._last: deque[float] = deque(maxlen=20)

    def rate(self, frame: Frame, x: float) -> Reading:
        size = abs(x)
        # A printed 0.000 may be anything below 0.0005, so it cannot prove that there is one mini-batch only.
        self._last.append(_THREE_DECIMALS if size == 0 and frame.three_decimals else size)
        if len(self._last) >= 5 and not any(self._last):
            return not_judged("always 0: one mini-batch and one epoch per step")
        figure, signals = "" if x >= 0 else "size", frame.signals
        gains = signals.reward.rises
        return self.compare(
            f"each step moves the policy by {number(size)} (ppo_kl)",
            lambda limits: [
                Clause(
                    size, weighed(ladder(limits, "value"), signals, gains), figure, keys.PPO_KL, POSITIVE, fixed=True
                )
            ],
        )


class KlController(_ReferenceRule):
    """Compares the smoothed KL with the target of an adaptive controller (KL-3)."""

    id = "KL-3"

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._mean = Ema()
        self._target = setup.config.target_kl or 0.0

    def not_applicable(self) -> str | None:
        if self.config.target_kl is None:
            return "no adaptive KL controller (algorithm.kl_ctrl.type)"
        return super().not_applicable()

    def rate(self, frame: Frame, x: float) -> Reading:
        mean = self._mean.add(x)
        return self.compare(
            f"KL {number(mean)}, target {number(self._target)}",
            lambda limits: [Clause(mean, ladder(limits, "ratio", unit=self._target), "smoothed", keys.KL, fixed=True)],
        )


class UnrewardedDrift(_ReferenceRule):
    """Compares the rise of the KL with the gain in reward (KL-4).

    The KL is the median of three steps before it is smoothed, so that a single odd step does not count.
    """

    id = "KL-4"
    worse = 1
    needs = (keys.KL, keys.SCORE)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._kl = Ema(1 / 3)
        self._score = Ema(1 / 3)
        self._last: deque[float] = deque(maxlen=SIGMA_WINDOW)
        self._past: deque[tuple[float, float]] = deque(maxlen=21)

    def rate(self, frame: Frame, x: float, score: float) -> Reading:
        self._last.append(x)
        kl, reward = self._kl.add(median(list(self._last)[-3:])), self._score.add(score)
        self._past.append((kl, reward))
        if self._kl.count < 6:
            return warming(6 - self._kl.count)
        lowest = min(range(len(self._past)), key=lambda index: self._past[index][0])
        rise, gain = kl - self._past[lowest][0], reward - self._past[lowest][1]
        steps, lowest_kl = len(self._past) - 1 - lowest, self._past[lowest][0]
        message = f"KL rose by {number(rise)} in {steps} steps while the reward changed by {number(gain)}"
        if rise < self.limits.raising["warn.rise"]:
            message = f"KL rose by only {number(rise)} in {steps} steps" if steps else "KL is not rising"
        least = max(lowest_kl, _BEYOND_NOISE * sigma(self._last))
        return self.compare(message, lambda limits: self._clauses(limits, rise, gain, least, frame.signals))

    @staticmethod
    def _clauses(
        limits: Mapping[str, float], rise: float, gain: float, least: float, signals: Signals
    ) -> Sequence[Clause]:
        reward, found = signals.reward, []
        for level, name in SERIOUS:
            worth = reward.distance(limits[f"{name}.gain_span"], limits[f"{name}.gain_sigmas"])
            figure = f"KL rise (reward gain < {number(worth)})"
            counted = rise if gain < worth else math.nan
            full = reward.room(reward.ema) < worth  # a reward at its ceiling cannot gain as much
            at_most = min(level, Level.WARN) if full or reward.gained_slowly else level
            rungs = weighed([Rung(at_most, ">=", max(limits[f"{name}.rise"], least))], signals, full or reward.rises)
            found.append(Clause(counted, rungs, figure, span=POSITIVE))
        return found


class ClippedTokens(Rule):
    """Judges the share of tokens whose ratio left the trust region (CLIP-1)."""

    id = "CLIP-1"
    worse = 1
    needs = (keys.CLIPPED,)

    def not_applicable(self) -> str | None:
        mode = self.config.clips_by_design
        return f"the {mode} loss clips by design" if mode else None

    def rate(self, frame: Frame, x: float) -> Reading:
        return self.compare(
            f"{number(100 * x)} % of tokens clipped",
            lambda limits: [
                Clause(x, weighed(ladder(limits, "share"), frame.signals), metric=keys.CLIPPED, span=SHARE, fixed=True)
            ],
        )
