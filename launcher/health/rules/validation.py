"""VAL-1 and HACK-1: whether a better training reward is a better model."""

from collections.abc import Mapping

from launcher.format import number
from launcher.health import keys
from launcher.health.frame import Frame
from launcher.health.rules.base import Rule, Setup, warming
from launcher.health.series import Baseline
from launcher.health.signals import Reward, Validation
from launcher.health.state import Reading
from launcher.record.levels import Level


class ValidationDrop(Rule):
    """Validation against its best pair; two low ones in a row count, as small sets are noisy."""

    id = "VAL-1"
    question = "Does validation hold up?"
    family = "validation"
    judges_validations = True

    def not_applicable(self) -> str | None:
        if self.config.validates:
            return None
        return "no validation in this run (trainer.test_freq, trainer.val_before_train)"

    def judge(self, frame: Frame) -> Reading | None:
        validation = frame.signals.validation
        if not validation.fresh:
            return Reading(Level.WARM, "waiting for the first validation") if not validation.count else None
        span, noise, limits = validation.span(frame.signals.reward), validation.sigma, self.limits.raising
        drop = validation.drops[-1]
        twice = min(validation.drops) if validation.count >= 3 else 0.0

        def beyond(x: float, level: str) -> bool:
            return x > max(limits[f"{level}.span"] * span, limits[f"{level}.sigmas"] * noise)

        level = Level.OK
        if beyond(twice, "critical"):
            level = Level.CRITICAL
        elif beyond(twice, "warn"):
            level = Level.WARN
        elif beyond(drop, "notice"):
            level = Level.NOTICE
        mean = " mean of two" if validation.count > 1 else ""
        best = f"best{mean} {number(validation.best)} (step {validation.best_step})"
        return Reading(level, f"validation {number(validation.value)}, {best}")


class RewardHacking(Rule):
    """Reward that rises together with length, or while validation falls."""

    id = "HACK-1"
    question = "Is the reward being gamed?"
    family = "reward"
    needs = (keys.SCORE, keys.LENGTH)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._scores = Baseline(20)
        self._lengths = Baseline(20)
        self._validations = 0
        self._diverging = False  # held from one validation to the next

    def judge(self, frame: Frame) -> Reading | None:
        reward, length = frame.signals.reward, frame.get(keys.LENGTH)
        if reward.score is None or length is None:
            return None
        validation = frame.signals.validation
        if validation.count != self._validations:
            self._validations = validation.count
            self._diverging = self._diverges(validation, reward)
        if len(self._scores) < 10:
            self._add(reward.score, length)
            return warming(11 - len(self._scores))
        usual, now = self._scores.median, reward.med3
        ratio = length / self._lengths.median if self._lengths.median > 0 else 1.0
        gamed = self._gamed(reward, now - usual, ratio, self.limits.raising)
        self._add(reward.score, length, refused=gamed >= Level.WARN)
        if self._diverging and gamed <= Level.WARN:
            return Reading(Level.WARN, "training reward rises, validation falls")
        grew = f"while length grew {number(ratio)}×" if gamed else f"at {number(ratio)}× the usual length"
        return Reading(gamed, f"reward {number(usual)} → {number(now)} {grew}")

    def _add(self, score: float, length: float, refused: bool = False) -> None:
        self._scores.add(score, refused)
        self._lengths.add(length, refused)

    @staticmethod
    def _gamed(reward: Reward, up: float, ratio: float, limits: Mapping[str, float]) -> Level:
        if up <= reward.distance(limits["warn.span"], limits["warn.sigmas"]):
            return Level.OK
        if ratio > limits["critical.ratio"]:
            return Level.CRITICAL
        if ratio > limits["critical.top_ratio"] and reward.near_top(reward.med3):
            return Level.CRITICAL
        return Level.WARN if ratio > limits["warn.ratio"] else Level.OK

    def _diverges(self, validation: Validation, reward: Reward) -> bool:
        """Whether validation has left its best pair for good while the training reward went on rising."""
        if validation.count < 4 or validation.best_index > validation.count - 4:
            return False
        limits = self.limits.raising
        fallen = validation.best - validation.pair() > max(
            limits["warn.validation_span"] * validation.span(reward),
            limits["warn.validation_sigmas"] * validation.sigma,
        )
        rise = reward.distance(limits["warn.training_span"], limits["warn.training_sigmas"])
        return fallen and reward.ema > validation.best_score_ema + rise
