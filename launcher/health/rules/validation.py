"""VAL-1, HACK-1 and HACK-2: whether a better training reward is a better model."""

import math
from collections.abc import Sequence

from launcher.core.format import number
from launcher.health import keys
from launcher.health.clauses import Clause, Measure, Values, ladder, rungs, worst
from launcher.health.frame import Frame
from launcher.health.rules.base import Rule, Setup, distinct, warming
from launcher.health.signals import Reward, Validation
from launcher.health.state import Reading
from launcher.record.levels import FLAGS, NOTICE, WARM, WARN

_AUDITED = 20  # steps from which the audit reward is compared with the first ones


class ValidationDrop(Rule):
    """Validation against its best pair; two low ones in a row count, as small sets are noisy."""

    id = "VAL-1"
    judges_validations = True

    def judge(self, frame: Frame) -> Reading | None:
        validation = self.signals.validation
        if not validation.fresh:
            return Reading(WARM, "waiting for the first validation") if not validation.count else None
        span, noise = validation.span(self.reward), validation.noise
        drop = validation.drops[-1]
        twice = min(validation.drops) if validation.count >= 3 else 0.0

        def clauses(limits: Values) -> Sequence[Clause]:
            notice, *serious = rungs(limits, ">", lambda at: max(at["span"] * span, at["sigmas"] * noise), FLAGS)
            return [
                (drop, [notice], Measure("drop below the best")),
                (twice, serious, Measure("drop below the best, two in a row")),
            ]

        mean = " mean of two" if validation.count > 1 else ""
        above = "above the " if number(drop) != "0" and drop < 0 else ""
        best = f"{above}best{mean} {number(validation.best)} (step {validation.best_step})"
        return self.compare(f"validation {number(validation.value)}, {best}", clauses)


class RewardHacking(Rule):
    """Reward that rises together with length, or while validation falls."""

    id = "HACK-1"
    needs = (keys.SCORE, keys.LENGTH)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._length = setup.signals.of("LENGTH")
        self._validations = 0
        self._apart: Clause = (math.nan, (), Measure())  # held from one validation to the next

    def rate(self, frame: Frame, score: float, length: float) -> Reading:
        reward, validation = self.reward, self.signals.validation
        if validation.count != self._validations:
            self._validations = validation.count
            self._apart = self._divergence(validation)
        if min(reward.known, self._length.known) < 10:
            return warming(11 - min(reward.known, self._length.known))
        usual, now, usual_length = reward.usual, reward.then(0), self._length.usual
        ratio = length / usual_length if usual_length > 0 else 1.0

        def message(reading: Reading) -> str:
            gamed, apart = (worst((clause,)) for clause in reading.clauses)
            if apart and gamed <= WARN:
                return "training reward rises while validation falls"
            grew = f"while length grew {number(ratio)}×" if gamed else f"at {number(ratio)}× the usual length"
            return f"reward {' vs usual '.join(distinct(now, usual))} (median of 3) {grew}"

        reading = self.compare(message, lambda limits: [self._gamed(limits, now, now - usual, ratio), self._apart])
        if worst(reading.raising[:1]) >= WARN:
            reward.refuse()
            self._length.refuse()
        return reading

    def _gamed(self, limits: Values, now: float, up: float, ratio: float) -> Clause:
        reward = self.reward
        rise = reward.distance(limits["warn.span"], limits["warn.sigmas"])
        measure = Measure("× usual length while the reward rises > {}", than=rise)
        top = ladder(limits, "top_ratio", ">") if reward.near_top(now) else []
        return ratio if up > rise else math.nan, ladder(limits, "ratio", ">") + top, measure

    def _divergence(self, validation: Validation) -> Clause:
        """How far validation has left its best pair for good while the training reward kept rising."""
        limits, reward = self.limits.raising, self.reward
        rise = reward.distance(limits["warn.training_span"], limits["warn.training_sigmas"])
        most = max(
            limits["warn.validation_span"] * validation.span(reward),
            limits["warn.validation_sigmas"] * validation.noise,
        )
        lasts = validation.count >= 4 and validation.best_index <= validation.count - 4
        counts = lasts and reward.smooth > validation.best_score + rise
        fallen = validation.best - validation.pair() if counts else math.nan
        return fallen, [(WARN, ">", most)], Measure("validation drop while the reward rises > {}", than=rise)


class AuditedReward(Rule):
    """Reward that rises while a second opinion on the same responses does not.

    The opinion is what the reward function returns as `audit`, or `acc`, next to the score. Not calibrated on failing
    runs: a NOTICE at most.
    """

    id = "HACK-2"
    needs = (keys.AUDIT, keys.SCORE)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._audit = Reward()

    def rate(self, frame: Frame, x: float, score: float) -> Reading:
        reward, audit = self.reward, self._audit
        audit.update(frame.step, x, None, None)
        if audit.count < _AUDITED:
            return warming(_AUDITED - audit.count)
        up, audited = reward.gain, audit.gain

        def apart(limits: Values) -> Sequence[Clause]:
            rise = reward.distance(limits["notice.span"], limits["notice.sigmas"])
            measure = Measure("audit change while the reward rises > {}", than=rise)
            least = limits["notice.audit_sigmas"] * audit.noise
            return [(audited if up > rise else math.nan, [(NOTICE, "<=", least)], measure)]

        return self.compare(lambda reading: f"reward changed by {number(up)}, audit reward by {number(audited)}", apart)
