"""LEN-1, TRUNC-1, ABORT-1 and INPUT-1: lengths of responses and prompts, how many are cut off, how many are empty."""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace

from launcher.core.format import number
from launcher.health import keys
from launcher.health.clauses import POSITIVE, SHARE, Clause, Rung, ladder, rungs, worst
from launcher.health.frame import Frame
from launcher.health.rules.base import PastRule, Rule, Setup, lasting, warming, weighed
from launcher.health.series import median, sigma
from launcher.health.signals import Signals
from launcher.health.state import Reading
from launcher.record.levels import FLAGS, Level
from launcher.verl.config import PROMPT

_FORECAST = 10  # steps that a forecast looks back
_GROWS, _BEYOND = 0.05, 2  # growth in them that is clear, and in units of the noise
_HALF = 0.5


class ResponseLength(PastRule):
    """Compares the mean length of a response with its usual, and with 50 to 100 steps ago or the beginning (LEN-1).

    Quickly longer responses remain a WARN while the reward rises: the reward may be a game.
    """

    id = "LEN-1"
    worse = 1
    needs = (keys.LENGTH,)

    def rate(self, frame: Frame, x: float) -> Reading:
        if (early := self.warm_up(x, 8)) is not None:
            return early
        usual, before = self._usual.median, self._usual.before
        message = f"mean response {number(x)} tokens vs usual {number(usual)}"
        signals = frame.signals
        reading = self.compare(message, lambda limits: self._beyond(limits, x, usual, before, signals))
        quick = worst(self._beyond(self.limits.raising, x, usual, math.nan, signals))
        if reading.raw > quick:
            when = "in the first steps" if math.isnan(self._usual.ago) else "50 to 100 steps ago"
            reading = replace(reading, message=f"{message}, {number(before)} {when}")
        self._usual.add(x, refused=quick >= Level.WARN)
        return reading if x >= usual else replace(reading, worse=-x)

    def _beyond(
        self, limits: Mapping[str, float], x: float, usual: float, before: float, signals: Signals
    ) -> Sequence[Clause]:
        if not usual > 0:
            return ()
        reward, shorter = signals.reward, ladder(limits, "shorter", "<", unit=usual)
        beyond = weighed(ladder(limits, "longer", ">", unit=usual), signals)
        beyond += weighed(shorter, signals, reward.rises)
        if before > 0:
            beyond += weighed(ladder(limits, "longer_ago", ">", unit=before), signals, reward.gained)
            beyond += weighed(ladder(limits, "longer_at_all", ">", unit=before), signals)
            gains = reward.gained or reward.rises
            beyond += weighed(ladder(limits, "shorter_ago", "<", unit=before), signals, gains)
        return [Clause(x, beyond, metric=keys.LENGTH, span=(0.0, self.config.response_limit or math.inf))]


class TruncatedResponses(PastRule):
    """Judges the share of responses at the length limit: its rise, and whether it stays high (TRUNC-1)."""

    id = "TRUNC-1"
    worse = 1
    needs = (keys.TRUNCATED,)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._last: deque[float] = deque(maxlen=5)
        self._trend: deque[float] = deque(maxlen=_FORECAST)
        self._count = 0
        self._longest = setup.config.response_limit or 0.0
        self._needed = 5 if self._longest else 10  # steps; without the limit, the longest so far may be far below it

    def rate(self, frame: Frame, x: float) -> Reading:
        x = self._share(frame, x)
        self._count += 1
        self._last.append(x)
        self._trend.append(x)
        said = f"{number(100 * x)} % of responses reach the length limit"
        settled = len(self._usual) >= 8  # before that nothing is usual yet, but the first steps are known
        usual, before = self._usual.median, min(self._usual.low, self._usual.start)
        noise = sigma(self._usual.values)

        def rising(limits: Mapping[str, float]) -> Clause:
            jumped = self._jumped(limits, usual, noise) if settled else ()
            return Clause(x, [*jumped, *self._grown(limits, before)], "share at the limit", keys.TRUNCATED, SHARE)

        risen = rising(self.limits.raising).level >= Level.WARN
        if settled:
            said += f" (usual {number(100 * usual)} %)"
        elif risen:
            said += f" ({number(100 * before)} % in the first steps)"
        left = self._left()
        reading = self.compare(
            said, lambda limits: [rising(limits), self._lasting(limits), self._forecast(limits, left)]
        )
        if reading.raw == reading.raising[-1].level > Level.OK:
            said = f"at this rate half of the responses are cut in {max(round(left), 1)} steps"
            reading = replace(reading, message=f"{said} (now {number(100 * x)} %)")
        self._usual.add(x, refused=risen)
        if not settled:
            return reading if reading.raw >= Level.WARN else warming(9 - len(self._usual))
        high = Clause(x, ladder(self.limits.raising, "lasting", ">")).level > Level.OK
        return lasting(reading) if high else reading

    @staticmethod
    def _jumped(limits: Mapping[str, float], usual: float, noise: float) -> Sequence[Rung]:
        return rungs(limits, ">", lambda at: max(at("share"), usual + max(at("distance"), at("sigmas") * noise)), FLAGS)

    @staticmethod
    def _grown(limits: Mapping[str, float], before: float) -> Sequence[Rung]:
        """Slowly: since the first steps, or within 100. None while those are missing (nan)."""
        return [] if math.isnan(before) else rungs(limits, ">", lambda at: max(at("level"), before + at("grown")))

    def _lasting(self, limits: Mapping[str, float]) -> Clause:
        least = min(self._last) if self._count >= self._needed else math.nan
        return Clause(least, ladder(limits, "lasting", ">"), "lowest of 5 steps", keys.TRUNCATED, SHARE, fixed=True)

    @staticmethod
    def _forecast(limits: Mapping[str, float], left: float) -> Clause:
        return Clause(left, ladder(limits, "forecast", "<"), "steps until half are cut, at this rate", span=POSITIVE)

    def _left(self) -> float:
        """Steps until half of the responses are cut, by the last 10; nan where the share does not grow clearly."""
        if len(self._trend) < _FORECAST:
            return math.nan
        shares = list(self._trend)
        then, now = median(shares[:3]), median(shares[-3:])
        grows = now - then > max(_GROWS, _BEYOND * sigma(shares)) and now < _HALF
        return (_HALF - now) * (_FORECAST - 3) / (now - then) if grows else math.nan

    def _share(self, frame: Frame, x: float) -> float:
        """The share of responses at the limit.

        The v1 trainer compares with the longest response of the batch, so its share is never 0: when even the
        longest is below the limit (where unknown: below an earlier one), nothing was cut off.
        """
        longest = frame.get(keys.LENGTH_MAX)
        if longest is None:
            return x
        if self.config.response_limit is None:
            self._longest = max(self._longest, longest)
        return 0.0 if longest < self._longest else x


class EmptyResponses(Rule):
    """The share of responses without a single token."""

    id = "ABORT-1"
    needs = (keys.EMPTY,)

    def rate(self, frame: Frame, x: float) -> Reading:
        return self.compare(
            f"{number(100 * x)} % of responses are empty",
            lambda limits: [Clause(x, ladder(limits, "share"), metric=keys.EMPTY, span=SHARE, fixed=True)],
        )


class Prompts(Rule):
    """Looks for prompts that are cut at their limit, or are of one length where they were not before (INPUT-1)."""

    id = "INPUT-1"
    needs = (keys.PROMPT_MIN, keys.PROMPT_MAX)
    also = (keys.PROMPTS_CUT,)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._limit = setup.config.number(PROMPT) or math.inf
        self._differed = False
        self._alike = 0  # steps in a row

    def rate(self, frame: Frame, least: float, most: float) -> Reading:
        full = most >= self._limit
        share = (frame.get(keys.PROMPTS_CUT) or 0.0) if full else 0.0
        self._differed = self._differed or least < most
        self._alike = self._alike + 1 if least == most and self._differed else 0
        message = f"prompts of {number(least)} to {number(most)} tokens"
        if full:
            message = f"{number(100 * share)} % of prompts are at the limit of {number(self._limit)} tokens"
        elif self._alike:
            message = f"all prompts have {number(most)} tokens for {self._alike} steps"
        return self.compare(
            message,
            lambda limits: [
                Clause(share, ladder(limits, "share", ">"), "prompts at the limit", span=SHARE, fixed=True),
                Clause(self._alike, ladder(limits, "steps"), "steps with prompts of one length", span=POSITIVE),
            ],
        )
