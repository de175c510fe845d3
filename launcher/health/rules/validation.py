"""VAL-1, HACK-1 and HACK-2: whether a better training reward means a better model."""

import math
from collections.abc import Sequence

from launcher.core.format import number
from launcher.health import keys
from launcher.health.clauses import Clause, Measure, Values, ladder, rungs, worst
from launcher.health.frame import Frame
from launcher.health.rules.base import Rule, Setup, distinct, signed
from launcher.health.signals import Validation
from launcher.health.state import Reading
from launcher.record.levels import FLAGS, NOTICE, WARM, WARN

_OF_SAMPLES = "LONGER_PAYS", "TRUE_ANSWERS"
_BEGUN = 3  # values from which the beginning is known
_WHY = {  # by (whether a second opinion confirms the reward, whether it comes from the samples)
    (None, False): "; no acc, audit or validation shows whether answers improve",
    (False, False): "; accuracy, audit and validation do not rise",
    (False, True): "; of responses to one prompt the longer ones score higher, and no more of them are right",
}
_AUDITED = 20  # steps from which the audit reward is compared with the first ones


class ValidationDrop(Rule):
    """Compares validation with its best pair; needs two low ones in a row, as small sets are noisy."""

    id = "VAL-1"
    judges_validations = True

    def judge(self, frame: Frame) -> Reading | None:
        validation = self.signals.validation
        if not validation.fresh:
            return Reading(WARM, "waiting for the first validation") if not validation.count else None
        span, noise = validation.span(self.reward), validation.noise
        drop = validation.drops[-1]
        twice = min(validation.drops) if validation.count >= 3 else 0.0
        error = self.reward.error(self.setup.validation_rows or math.inf)

        def clauses(limits: Values) -> Sequence[Clause]:
            notice, *serious = rungs(
                limits, ">", lambda at: max(at["span"] * span, at["sigmas"] * noise, at["errors"] * error), FLAGS
            )
            return [
                (drop, [notice], Measure("drop below the best")),
                (twice, serious, Measure("drop below the best, two in a row")),
            ]

        mean = "; a mean of two" if validation.count > 1 else ""
        above = "above " if number(drop) != "0" and drop < 0 else ""
        best = f"{above}best {number(validation.best)} ({self.config.numbering.place(validation.best_step)}){mean}"
        return self.compare(f"validation {number(validation.value)}, {best}", clauses)


class RewardHacking(Rule):
    """Flags a reward that rises with the length, or while validation falls or stays.

    Longer responses are a WARN only if a second opinion does not rise: accuracy, audit or validation. Without these, if
    longer responses to one prompt score higher, it is the share of answers equal to the expected ones.
    """

    id = "HACK-1"
    needs = (keys.SCORE, keys.LENGTH)
    also = (keys.LONGER_PAYS, keys.TRUE_ANSWERS)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        of = setup.signals.of
        self._length, self._audit, self._pays, self._answers = map(of, ("LENGTH", "AUDIT", *_OF_SAMPLES))
        self._validations = 0
        self._apart: Clause = (math.nan, (), Measure())  # held from one validation to the next
        self._flat: Clause = (math.nan, (), Measure())
        self._gained = self._rose = 0.0  # gains of validation, and of the training reward meanwhile
        self._true = False  # whether validation confirms the reward
        self._paid = 0.0  # the most that longer responses to one prompt have paid, smoothed

    def rate(self, frame: Frame, score: float, length: float) -> Reading:
        reward, validation = self.reward, self.signals.validation
        if validation.count != self._validations:
            self._validations = validation.count
            self._apart = self._divergence(validation)
            self._flat = self._unconfirmed(validation)
        self._paid = max(self._paid, self._pays.smooth)
        confirmed, sampled = self._confirmed()
        known, needed = min(reward.known, self._length.known), _BEGUN if sampled else 10
        if known < needed:
            return self.warming(needed + 1 - known)
        usual, now = reward.first if sampled else reward.usual, reward.then(0)
        lengths = (self._length.first, "first"), (self._length.usual, "usual")
        before, named = lengths[0] if sampled else max(lengths)
        ratio = length / before if before > 0 else 1.0

        def message(reading: Reading) -> str:
            gamed, apart, flat = (worst((clause,)) for clause in reading.clauses)
            if apart and gamed <= WARN:
                return f"validation fell {number(self._apart[0])}, training reward rises"
            if flat and gamed <= WARN:
                gained, rose = signed(self._gained), signed(self._rose)
                return f"validation {gained}, training reward {rose}"
            why = _WHY.get((confirmed, sampled), "") if gamed else ""
            past = "first" if sampled else "usual"
            grew = f"length {number(ratio)}×; of the {named} length, reward as median of 3"
            return f"reward {f' vs {past} '.join(distinct(now, usual))}, {grew}{why}"

        reading = self.compare(
            message, lambda limits: [self._gamed(limits, now, now - usual, ratio, confirmed), self._apart, self._flat]
        )
        if worst(reading.raising[:1]) >= WARN:
            reward.refuse()
            self._length.refuse()
        return reading

    def _confirmed(self) -> tuple[bool | None, bool]:
        """Whether a second opinion rises with the reward (None without one), and whether only the samples deny it."""
        reward = self.reward
        enough = self.limits.raising["warn.confirmed"] * (reward.smooth - reward.first) / max(reward.span, 1.0)
        found = [] if math.isnan(self._rose) or self._validations < _BEGUN else [self._true]
        if self._audit.known >= _BEGUN:
            found.append(self._audit.smooth - self._audit.start >= enough)
        if found:
            return any(found), False
        if self._answers.known < _BEGUN or self._paid < self.limits.raising["warn.paid"]:
            return None, False
        rises = self._answers.smooth - self._answers.start >= enough
        return rises, not rises

    def _gamed(self, limits: Values, now: float, up: float, ratio: float, confirmed: bool | None) -> Clause:
        reward = self.reward
        rise = reward.distance(limits["warn.span"], limits["warn.sigmas"])
        measure = Measure("× usual length while the reward rises > {}", than=rise)
        rungs = ladder(limits, "ratio", ">") + (ladder(limits, "top_ratio", ">") if reward.near_top(now) else [])
        if confirmed is not False:
            rungs = [(NOTICE, side, x) for _, side, x in rungs]
        return ratio if up > rise else math.nan, rungs, measure

    def _unconfirmed(self, validation: Validation) -> Clause:
        """The gain in validation during the gain in training reward, for two validations; also whether it confirms the
        gain.

        Longer or shorter prompts, or sorted data, may be easier; a rising accuracy is a second opinion. An unknown
        number of validation rows counts as the smallest.
        """
        limits, reward = self.limits.raising, self.reward
        self._rose, self._gained, alike = validation.gains(reward)
        rose, gained, least = self._rose, self._gained, limits["warn.rows"]
        rows = self.setup.validation_rows or least
        error = reward.error(rows)
        rise = max(reward.distance(limits["warn.training_span"], limits["warn.training_sigmas"]), 3 * error)
        enough = limits["warn.confirmed"] * rose
        accurate = self._audit.smooth - self._audit.start >= enough
        self._true = rose > 0 and (gained >= max(enough, error) or accurate)
        same = alike and not accurate and self.config.flag("data.shuffle") is not False
        counts = same and rows >= least and rose > rise
        measure = Measure("validation gain while the training reward rose > {}", than=rise)
        return gained if counts else math.nan, [(WARN, "<", enough)], measure

    def _divergence(self, validation: Validation) -> Clause:
        """How far validation stays below its best pair while the training reward rises."""
        at, reward = self.limits.raising.at["warn"], self.reward
        rise = reward.distance(at["training_span"], at["training_sigmas"])
        most = max(at["validation_span"] * validation.span(reward), at["validation_sigmas"] * validation.noise)
        lasts = validation.count >= 4 and validation.best_index <= validation.count - 4
        counts = lasts and reward.smooth > validation.best_score + rise
        fallen = validation.best - validation.pair() if counts else math.nan
        return fallen, [(WARN, ">", most)], Measure("validation drop while the reward rises > {}", than=rise)


class AuditedReward(Rule):
    """Flags a reward that rises while a second opinion on the same responses does not.

    The opinion is `audit` or `acc` from the reward function. A NOTICE at most, as it is not calibrated on failing runs.
    """

    id = "HACK-2"
    needs = (keys.AUDIT, keys.SCORE)
    reads = ("AUDIT",)

    def rate(self, frame: Frame, x: float, score: float) -> Reading:
        reward, (audit,) = self.reward, self.models
        if audit.count < _AUDITED:
            return self.warming(_AUDITED - audit.count)
        up, audited = reward.gain, audit.gain

        def apart(limits: Values) -> Sequence[Clause]:
            rise = reward.distance(limits["notice.span"], limits["notice.sigmas"])
            measure = Measure("audit change while the reward rises > {}", than=rise)
            least = limits["notice.audit_sigmas"] * audit.noise
            return [(audited if up > rise else math.nan, [(NOTICE, "<=", least)], measure)]

        return self.compare(lambda reading: f"reward {signed(up)}, audit reward {signed(audited)}", apart)
