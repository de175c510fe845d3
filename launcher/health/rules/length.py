"""LEN-1 and TRUNC-1: response lengths and the share of truncated responses."""

import math
from collections.abc import Sequence

from launcher.core.format import number
from launcher.health import keys
from launcher.health.clauses import POSITIVE, SHARE, Clause, Measure, Rung, Values, ladder, rungs, worst
from launcher.health.frame import Frame
from launcher.health.metric import FIRST, Metric, Noise
from launcher.health.rules.base import Rule, Setup, lasting
from launcher.health.state import Reading
from launcher.record.levels import FLAGS, NOTICE, WARN

_FORECAST = 10  # steps that a forecast looks back
_GROWS, _BEYOND = 0.05, 2  # growth in them that is clear, and in units of the noise
_HALF = 0.5
_LONG = 10  # steps after which a reward may be expected to rise
_SHARE = Measure("share at the limit", keys.TRUNCATED, SHARE)
_LOWEST = Measure("lowest of 5 steps", keys.TRUNCATED, SHARE, fixed=True)
_UNTIL = Measure("steps until half are cut, at this rate", span=POSITIVE)


class ResponseLength(Rule):
    """Compares the mean response length with its usual value, and with 50 to 100 steps ago or the start (LEN-1).

    A fast increase remains a WARN while the reward rises: it may be reward hacking.
    """

    id = "LEN-1"
    worse = 1
    needs = (keys.LENGTH,)
    reads = ("LENGTH",)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._measure = Measure(metric=keys.LENGTH, span=(0.0, self.config.response_limit or math.inf))

    def rate(self, frame: Frame, x: float) -> Reading:
        (length,) = self.models
        if length.known < FIRST:
            return self.warming(FIRST + 1 - length.known)
        usual, before = length.usual, length.before

        def message(reading: Reading) -> str:
            slow = f"; {number(before)} ({self.since(length)})" if not reading.about(0, 1) else ""
            return f"mean response {number(x)} tokens vs usual {number(usual)}{slow}"

        def clauses(limits: Values) -> Sequence[Clause]:
            gained, rises = self.reward.gained, self.reward.rises
            longer = self.weighed(ladder(limits, "longer", ">", unit=usual))
            shorter = self.weighed(ladder(limits, "shorter", "<", unit=usual), rises)
            slowly = [
                *self.weighed(ladder(limits, "longer_ago", ">", unit=before), gained),
                *self.weighed(ladder(limits, "longer_at_all", ">", unit=before)),
                *self.weighed(ladder(limits, "shorter_ago", "<", unit=before), gained or rises),
            ]
            return [(x, [*longer, *shorter], self._measure), (x, slowly, self._measure)]

        reading = self.compare(message, clauses)
        if worst(reading.raising[:1]) >= WARN:
            length.refuse()
        reading.worse = x if x >= usual else -x
        return reading


class TruncatedResponses(Rule):
    """Judges the share of responses at the length limit: its rise, and whether it stays high (TRUNC-1)."""

    id = "TRUNC-1"
    worse = 1
    needs = (keys.TRUNCATED,)
    reads = ("TRUNCATED",)

    def rate(self, frame: Frame, x: float) -> Reading:
        (cut,) = self.models
        settled = cut.known >= FIRST  # before, nothing is usual yet, but the first steps are known
        before, left = min(cut.low, cut.start), self._left(cut)
        now, usual = cut.now, cut.usual if settled else before
        needed = 5 if self.config.response_limit else 10  # without the limit, the longest so far may be far below it
        lowest = cut.lowest(5) if cut.count >= needed else math.nan

        nearly_all = math.nan if cut.count < _LONG or self.reward.rises else lowest

        def message(reading: Reading) -> str:
            share, known = f"{number(100 * now)} %", f"{number(100 * usual)} %"
            if reading.level and reading.about(-1):
                soon = self.config.numbering.count(max(round(left), 1))
                return f"{share} of responses cut, half in {soon}; at this rate"
            aside = f" (usual {known})" if settled else f" (first steps {known})"
            said = settled or worst(reading.clauses[:1]) >= WARN
            return f"{share} of responses cut{aside if said else ''}"

        reading = self.compare(
            message,
            lambda limits: [
                (now, self._rising(cut, limits, before), _SHARE),
                (lowest, ladder(limits, "lasting", ">"), _LOWEST),
                (nearly_all, ladder(limits, "all", ">"), _LOWEST),
                (left, ladder(limits, "forecast", "<"), _UNTIL),
            ],
        )
        if worst(reading.raising[:1]) >= WARN:
            cut.refuse()
        if not settled:
            return reading if reading.raw >= WARN else self.warming(FIRST + 1 - cut.known)
        high = now > min(limit for _, limit in self.limits.raising.named["lasting"])
        return lasting(reading) if high else reading

    def harms(self) -> bool:
        """False while long responses may raise the reward, until nearly all are truncated."""
        return not self.reward.rises or self.models[0].now > self.limits.raising["critical.share"]

    def _rising(self, cut: Metric, limits: Values, before: float) -> Sequence[Rung]:
        """Limits of a fast rise over the usual share, and of a slow rise since the first steps or within 100; empty
        while unknown.

        Up to half of the responses are a NOTICE while the reward rises.
        """
        found, usual, noise = list[Rung](), cut.usual, cut.noise
        if cut.known >= FIRST:
            for level, name in FLAGS:
                at = limits.at[name]
                found.append((level, ">", max(at["share"], usual + max(at["distance"], at["sigmas"] * noise))))
        if math.isfinite(before):
            found += rungs(limits, ">", lambda at: max(at["level"], before + at["grown"]))
        if self.reward.rises and cut.now <= _HALF:
            return [(min(level, NOTICE), side, limit) for level, side, limit in found]
        return found

    @staticmethod
    def _left(cut: Metric) -> float:
        """Steps until half of the responses are truncated, by the last 10; nan without a clear increase."""
        shares, then, now = cut.last(_FORECAST), cut.then(_FORECAST - 3), cut.then(0)
        if not now - then > _GROWS or now >= _HALF or now - then <= _BEYOND * Noise(_FORECAST, shares).size:
            return math.nan
        return (_HALF - now) * (_FORECAST - 3) / (now - then)
