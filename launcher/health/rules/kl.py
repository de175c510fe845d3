"""KL-0 to KL-4 and CLIP-1: how far the policy moves, from its reference and within a step."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from launcher.format import number
from launcher.health import keys
from launcher.health.frame import Frame
from launcher.health.rules.base import Rule, Setup, ladder, not_judged, warming
from launcher.health.series import Baseline, Ema
from launcher.health.state import Reading
from launcher.record.levels import SERIOUS, Bound, Level

_THREE_DECIMALS = 0.0005  # what a printed 0.000 may hide


class _ReferenceRule(Rule):
    """A rule on the KL to the reference policy."""

    family = "kl"
    needs: ClassVar[tuple[tuple[str, ...], ...]] = (keys.KL,)

    def not_applicable(self) -> str | None:
        if self.config.kl_in_reward is False and self.config.kl_in_loss is False:
            return (
                "no KL in this run: set algorithm.use_kl_in_reward=True or "
                "actor_rollout_ref.actor.use_kl_loss=True to watch the drift"
            )
        return None


class PlausibleKl(_ReferenceRule):
    """A true KL is never negative, so a mean below zero means that the log-probs do not belong together."""

    id = "KL-0"
    question = "Is the KL estimate plausible?"
    on_chart = True
    limit = ("mean", "<")

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._last: deque[float] = deque(maxlen=5)

    def weigh(self, x: float, frame: Frame) -> Reading:
        self._last.append(x)
        if len(self._last) < 5:
            return warming(5 - len(self._last))
        mean = sum(self._last) / 5
        message = f"mean KL of the last 5 steps is {number(mean)}"
        reading = self.compare(mean, message)
        return reading if reading.raw == Level.OK else replace(reading, message=f"{message}, below 0")


class KlBlowUp(_ReferenceRule):
    """The KL against fixed limits and against its own recent past."""

    id = "KL-1"
    question = "Is the policy running away from the reference?"
    on_chart = True

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._usual = Baseline(20)

    def weigh(self, x: float, frame: Frame) -> Reading:
        usual = f" vs usual {number(self._usual.median)}" if len(self._usual) else ""
        shown = "< 0.0005" if x == 0 and frame.three_decimals else number(x)
        reading = self.compare(x, f"KL {shown}{usual}")
        self._usual.add(x, refused=reading.raw >= Level.WARN)
        return reading

    def bounds(self, limits: Mapping[str, float]) -> Sequence[Bound]:
        found = ladder(limits, "value")
        if len(self._usual) >= 5:
            usual = self._usual.median
            jump = limits["critical.ratio"] * usual + limits["critical.offset"]
            early = limits["critical.early_ratio"] * max(usual, 0.01)
            found += [
                Bound(Level.WARN, ">", limits["warn.ratio"] * usual + limits["warn.offset"]),
                Bound(Level.CRITICAL, ">", max(limits["critical.jump"], jump)),
                Bound(Level.CRITICAL, ">", max(limits["critical.early"], early)),
            ]
        return found


class UpdateSize(Rule):
    """The KL between the policy before and after one step."""

    id = "KL-2"
    question = "Is each update small enough?"
    family = "kl"
    needs = (keys.PPO_KL,)
    on_chart = True
    limit = ("value", ">=")

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._last: deque[float] = deque(maxlen=20)

    def weigh(self, x: float, frame: Frame) -> Reading:
        size = abs(x)
        # A printed 0.000 may be anything below 0.0005, so it cannot prove that there is one minibatch only.
        self._last.append(_THREE_DECIMALS if size == 0 and frame.three_decimals else size)
        if len(self._last) >= 5 and not any(self._last):
            return not_judged("always 0: one minibatch and one epoch a step")
        return self.compare(size, f"one step moves the policy by {number(size)} (ppo_kl)")


class KlController(_ReferenceRule):
    """The smoothed KL against the target of an adaptive controller."""

    id = "KL-3"
    question = "Does the KL controller hold its target?"
    on_chart = True

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._mean = Ema()
        self._target = setup.config.target_kl or 0.0

    def not_applicable(self) -> str | None:
        if self.config.target_kl is None:
            return "no adaptive KL controller (algorithm.kl_ctrl.type)"
        return super().not_applicable()

    def weigh(self, x: float, frame: Frame) -> Reading:
        mean = self._mean.add(x)
        return self.compare(mean, f"KL {number(mean)}, target {number(self._target)}")

    def bounds(self, limits: Mapping[str, float]) -> Sequence[Bound]:
        return ladder(limits, "ratio", unit=self._target)


class UnrewardedDrift(_ReferenceRule):
    """KL that rises without buying reward: neither a jump nor a limit, the slow way to lose a run."""

    id = "KL-4"
    question = "Is the drift buying reward?"
    needs = (keys.KL, keys.SCORE)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._kl = Ema(1 / 3)
        self._score = Ema(1 / 3)
        self._past: deque[tuple[float, float]] = deque(maxlen=21)

    def judge(self, frame: Frame) -> Reading | None:
        x, score = frame.get(keys.KL), frame.signals.reward.score
        if x is None or score is None:
            return None
        kl, reward = self._kl.add(x), self._score.add(score)
        self._past.append((kl, reward))
        if self._kl.count < 6:
            return warming(6 - self._kl.count)
        lowest = min(range(len(self._past)), key=lambda index: self._past[index][0])
        rise, gain = kl - self._past[lowest][0], reward - self._past[lowest][1]
        steps = len(self._past) - 1 - lowest
        raw = self._level(rise, gain, frame, self.limits.raising)
        hold = self._level(rise, gain, frame, self.limits.releasing)
        message = f"KL rose by {number(rise)} in {steps} steps while the reward changed by {number(gain)}"
        if rise < self.limits.raising["warn.rise"]:
            message = f"KL rose by only {number(rise)} in {steps} steps" if steps else "KL does not rise"
        return Reading(raw, message, hold)

    @staticmethod
    def _level(rise: float, gain: float, frame: Frame, limits: Mapping[str, float]) -> Level:
        enough = frame.signals.reward.distance
        for level, name in reversed(SERIOUS):
            worth = enough(limits[f"{name}.gain_span"], limits[f"{name}.gain_sigmas"])
            if rise >= limits[f"{name}.rise"] and gain < worth:
                return level
        return Level.OK


class ClippedTokens(Rule):
    """The share of tokens whose ratio left the trust region."""

    id = "CLIP-1"
    question = "Are too many tokens clipped?"
    family = "kl"
    needs = (keys.CLIPPED,)
    on_chart = True
    limit = ("share", ">=")

    def not_applicable(self) -> str | None:
        mode = self.config.clips_by_design
        return f"the {mode} loss clips by design" if mode else None

    def weigh(self, x: float, frame: Frame) -> Reading:
        return self.compare(x, f"{number(100 * x)} % of tokens clipped")
