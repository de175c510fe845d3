"""CRIT-1: the critic of PPO."""

from collections import deque
from collections.abc import Mapping, Sequence

from launcher.format import number
from launcher.health import keys
from launcher.health.frame import Frame
from launcher.health.rules.base import Rule, Setup, ladder, warming
from launcher.health.series import Baseline, median
from launcher.health.signals import Reward
from launcher.health.state import Reading
from launcher.record.levels import SERIOUS, Bound, Level, worst

_WARM = 20  # the loss falls from its start
_EXPLAINED_FROM = 31
_STILL_FALLS = 0.9  # the newest ten of the last fifty losses, to the oldest ten


class CriticFit(Rule):
    """The value loss against its usual and the range of rewards, and the variance it explains."""

    id = "CRIT-1"
    question = "Does the critic keep up?"
    family = "critic"
    needs = (keys.VALUE_LOSS,)
    also = (keys.EXPLAINED,)
    on_chart = True

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._usual = Baseline(20)
        self._count = 0
        self._losses: deque[float] = deque(maxlen=50)
        self._explained: deque[float] = deque(maxlen=5)
        self._reward: Reward | None = None

    def not_applicable(self) -> str | None:
        return f"no critic in this run ({self.config.estimator})" if self.config.has_critic is False else None

    def weigh(self, x: float, frame: Frame) -> Reading:
        self._reward, explained = frame.signals.reward, frame.get(keys.EXPLAINED)
        self._count += 1
        self._losses.append(x)
        if explained is not None:
            self._explained.append(explained)
        if self._count <= _WARM:
            self._usual.add(x)
            return warming(_WARM + 1 - self._count)
        loss = self.compare(x, f"value loss {number(x)} vs usual {number(self._usual.median)}")
        self._usual.add(x, refused=loss.raw >= Level.WARN)
        nothing_to_explain = self._reward.count and not self._reward.span  # SIG-1 says so
        if self._count < _EXPLAINED_FROM or not self._explained or nothing_to_explain:
            return loss
        middle = median(self._explained)
        level = worst(middle, ladder(self.limits.raising, "explained", "<"))
        message = f"explained variance {number(middle)}"
        if level > Level.NOTICE and self._learns():
            # A fresh critic begins far below zero where rewards hardly vary, and needs longer than 31 steps.
            level, message = Level.NOTICE, f"{message}, but the value loss still falls"
        if level <= loss.raw:
            return Reading(loss.raw, loss.message, max(loss.hold or loss.raw, level))
        return Reading(level, message, max(level, loss.hold or level))

    def _learns(self) -> bool:
        losses = list(self._losses)
        return median(losses[-10:]) < _STILL_FALLS * median(losses[:10])

    def bounds(self, limits: Mapping[str, float]) -> Sequence[Bound]:
        if self._reward is None or self._count < _WARM:
            return ()
        usual, span = self._usual.median, self._reward.span
        return [
            Bound(level, ">", max(limits[f"{name}.ratio"] * usual, limits[f"{name}.span"] * span * span))
            for level, name in SERIOUS
        ]
