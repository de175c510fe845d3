"""ENT-1 to ENT-3: how undecided the policy is."""

from collections.abc import Mapping, Sequence

from launcher.format import number
from launcher.health import keys
from launcher.health.frame import Frame
from launcher.health.rules.base import Rule, Setup, moved, warming
from launcher.health.series import Baseline
from launcher.health.signals import Entropy
from launcher.health.state import Reading
from launcher.record.levels import FLAGS, SERIOUS, Bound, Level, worst

_NOTHING_LEFT = 0.02  # entropies at or below this say nothing when they halve
_SPANS = (5, 10, 20)


class EntropyCollapse(Rule):
    """Entropy that falls too fast, or has run out (the absolute part holds for token means only)."""

    id = "ENT-1"
    question = "Is the policy collapsing?"
    family = "entropy"
    needs = (keys.ENTROPY,)
    on_chart = True

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._falls: list[tuple[int, float]] = []  # steps, entropy that many steps ago

    def judge(self, frame: Frame) -> Reading | None:
        entropy = frame.signals.entropy
        if entropy.value is None:
            return None
        if entropy.count < 8:
            return warming(8 - entropy.count)
        now = entropy.then(0)
        assert now is not None  # 8 values are there
        self._falls = [(n, then) for n in _SPANS if (then := entropy.then(n)) is not None and then > _NOTHING_LEFT]
        falling = worst(now, self.bounds(self.limits.raising))
        level = self._level(entropy)
        if level >= falling and level > Level.OK:
            start = f" (started at {number(entropy.start)})" if entropy.start is not None else ""
            return Reading(level, f"entropy {number(entropy.ema)}{start}")
        if not self._falls:
            return Reading(falling, f"entropy {number(now)}")
        steps, then = min(self._falls, key=lambda fall: self._severity(now, fall))
        verb = "fell" if now < then else "went"
        return Reading(falling, f"entropy {moved(verb, then, now, f' in {steps} steps')}")

    def bounds(self, limits: Mapping[str, float]) -> Sequence[Bound]:
        return [
            Bound(level, "<", limits[f"{name}.ratio_{n}"] * then) for level, name in SERIOUS for n, then in self._falls
        ]

    def lasting(self) -> Sequence[Bound]:
        if not self.config.token_mean:
            return ()
        return [Bound(Level.NOTICE, "<", self.limits.raising["notice.value"])]

    def _severity(self, now: float, fall: tuple[int, float]) -> float:
        """How close the fall over some steps is to its WARN limit: below 1 it has crossed it."""
        steps, then = fall
        return now / (self.limits.raising[f"warn.ratio_{steps}"] * then)

    def _level(self, entropy: Entropy) -> Level:
        """The absolute part: a smoothed entropy near zero, and low against where it started."""
        if not self.config.token_mean:
            return Level.OK
        limits = self.limits.raising
        if entropy.start is not None:
            for level, name in reversed(SERIOUS):
                if entropy.ema < min(limits[f"{name}.value"], limits[f"{name}.start"] * entropy.start):
                    return level
        return Level.NOTICE if entropy.ema < limits["notice.value"] else Level.OK


class EntropyRise(Rule):
    """Entropy far above its usual: the policy babbles."""

    id = "ENT-2"
    question = "Is the policy turning into noise?"
    family = "entropy"
    needs = (keys.ENTROPY,)
    on_chart = True

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._usual = Baseline(20)

    def weigh(self, x: float, frame: Frame) -> Reading:
        if len(self._usual) < 10:
            self._usual.add(x)
            return warming(11 - len(self._usual))
        reading = self.compare(x, f"entropy {number(x)} vs usual {number(self._usual.median)}")
        self._usual.add(x, refused=reading.raw >= Level.WARN)
        return reading

    def bounds(self, limits: Mapping[str, float]) -> Sequence[Bound]:
        usual = self._usual.median
        return [Bound(level, ">=", limits[f"{name}.ratio"] * usual + limits[f"{name}.offset"]) for level, name in FLAGS]


class LowEntropy(Rule):
    """Little entropy left and no progress: not a fault, but probably all that the run can give."""

    id = "ENT-3"
    question = "Is the exploration used up?"
    family = "entropy"
    needs = (keys.ENTROPY, keys.SCORE)

    def judge(self, frame: Frame) -> Reading | None:
        entropy, reward = frame.signals.entropy, frame.signals.reward
        if entropy.value is None or reward.score is None:
            return None
        if entropy.count < 50:
            return warming(50 - entropy.count)
        start = entropy.start or 0.0
        share = entropy.ema / start if start else 1.0
        limits = self.limits.raising
        used_up = share < limits["notice.start"] and reward.steps_since_best > limits["notice.steps"]
        ending = f" and the reward has not improved for {reward.steps_since_best} steps" if used_up else ""
        return Reading(
            Level.NOTICE if used_up else Level.OK, f"entropy is {number(100 * share)} % of its start{ending}"
        )
