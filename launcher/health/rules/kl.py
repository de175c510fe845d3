"""KL-1 and KL-4: how far the policy moves from its reference."""

import math
from collections import deque
from collections.abc import Sequence

from launcher.core.format import number
from launcher.health import keys
from launcher.health.clauses import POSITIVE, Clause, Measure, Values, ladder
from launcher.health.frame import Frame
from launcher.health.metric import Metric
from launcher.health.rules.base import Rule, Setup, extremes, signed
from launcher.health.state import Reading
from launcher.record.levels import CRITICAL, NOTICE, SERIOUS, WARN

_BEYOND_NOISE = 2  # multiple of the KL's noise from which a rise counts
_FIXED, _USUAL = Measure(metric=keys.KL, fixed=True), Measure(metric=keys.KL)
_RISE = Measure("KL rise", span=POSITIVE)


class KlBlowUp(Rule):
    """Compares the KL with fixed limits and, beyond its noise, with its first and recent values (KL-1)."""

    id = "KL-1"
    worse = 1
    needs = (keys.KL,)
    reads = ("KL",)

    def rate(self, frame: Frame, x: float) -> Reading:
        (kl,) = self.models
        usual = kl.usual if kl.settled else kl.start
        settled = kl.settled

        def message(reading: Reading) -> str:
            known = f"usual {number(usual)}" if settled else f"{number(usual)} (first steps)"
            shown = "< 0.0005" if x == 0 and frame.three_decimals else number(x)
            return f"KL {shown}" + ("" if math.isnan(usual) else f" vs {known}")

        reading = self.compare(message, lambda limits: self._clauses(limits, x, usual), kl)
        if self.reward.young and reading.raw >= NOTICE:
            kl.refuse()
        reading.usual = kl.usual if kl.settled else None
        return reading

    def _clauses(self, limits: Values, x: float, usual: float) -> Sequence[Clause]:
        found: list[Clause] = [(x, self.weighed(ladder(limits, "value")), _FIXED)]
        if math.isfinite(usual):
            warn, critical = (usual * self.models[0].swing(limits.at[name]["sigmas"]) for _, name in SERIOUS)
            jump = limits["critical.ratio"] * usual + limits["critical.offset"]
            early = limits["critical.early_ratio"] * max(usual, 0.01)
            rungs = [
                (WARN, ">", max(limits["warn.ratio"] * usual + limits["warn.offset"], warn)),
                (CRITICAL, ">", max(limits["critical.jump"], jump, critical)),
                (CRITICAL, ">", max(limits["critical.early"], early, critical)),
            ]
            if not self.signals.harm:  # every policy leaves its reference
                spared = 3 if self.reward.rises else int(self.reward.young)
                most = extremes(rungs[:spared])
                rungs[:spared] = [*((NOTICE, side, value) for _, side, value in rungs[:spared]), *most]
            found.append((x, self.weighed(rungs, self.reward.rises), _USUAL))
        return found


class UnrewardedDrift(Rule):
    """Compares the rise of the KL with the gain in reward (KL-4).

    The KL is the median of three steps before it is smoothed, so that single outliers do not count.
    """

    id = "KL-4"
    worse = 1
    needs = (keys.KL, keys.SCORE)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._kl, self._steady, self._score = setup.signals.of("KL"), Metric(), Metric()
        self._past: deque[tuple[float, int, float]] = deque(maxlen=21)

    def rate(self, frame: Frame, x: float, score: float) -> Reading:
        self._steady.see(self._kl.median(3))
        self._score.see(score)
        kl, reward = self._steady.smooth, self._score.smooth
        count = self._steady.count
        if count:
            self._past.append((kl, count, reward))
        if count < 6:
            return self.warming(6 - count)
        lowest, at, then = min(self._past)
        rise, gain, span = kl - lowest, reward - then, count - at

        def message(reading: Reading) -> str:
            during = f"in {self.config.numbering.count(span)}"
            if rise < self.limits.raising["warn.rise"]:
                return f"smoothed KL rose by only {number(rise)} {during}" if span else "KL is not rising"
            return f"KL rose {number(rise)} {during}, reward {signed(gain)}; both smoothed"

        least = max(lowest, _BEYOND_NOISE * self._kl.noise)
        return self.compare(message, lambda limits: self._clauses(limits, rise, gain, least))

    def _clauses(self, limits: Values, rise: float, gain: float, least: float) -> Sequence[Clause]:
        reward, found = self.reward, []
        gained, rises, room = reward.gained_slowly, reward.rises, reward.room(reward.smooth)
        for level, name in SERIOUS:
            at, worth = limits.at[name], self._worth(limits, name)
            full = room < self._worth(self.limits.raising, name)  # a reward at its ceiling cannot gain as much
            at_most = min(level, WARN) if full or gained else level
            rungs = self.weighed([(at_most, ">=", max(at["rise"], least))], full or rises or (gained and gain > 0))
            found.append((rise if gain < worth else math.nan, rungs, _RISE))
        return found

    def _worth(self, limits: Values, level: str) -> float:
        """The gain in reward that justifies a rise."""
        return self.reward.distance(limits[f"{level}.gain_span"], limits[f"{level}.gain_sigmas"])
