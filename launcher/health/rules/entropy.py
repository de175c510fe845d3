"""ENT-1 to ENT-3: how undecided the policy is."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from launcher.core.format import number
from launcher.health import keys
from launcher.health.clauses import POSITIVE, Clause, Rung, ladder, worst
from launcher.health.frame import Frame
from launcher.health.rules.base import Rule, Setup, eased, moved, warming
from launcher.health.series import Baseline, swing
from launcher.health.signals import Entropy, Signals
from launcher.health.state import Reading
from launcher.record.levels import FLAGS, SERIOUS, Level

_NOTHING_LEFT = 0.02  # entropies at or below this say nothing when they halve
_SPANS = (5, 10, 20)
_FEWEST = 4  # values from which a fall is judged
_BABBLE = 1.3  # times the first entropy: near the top of what it can be, and not from the beginning


class EntropyCollapse(Rule):
    """Entropy that falls too fast and beyond its noise, or has run out (this part holds for token means only)."""

    id = "ENT-1"
    name = "Entropy collapse"
    family = "entropy"
    needs = (keys.ENTROPY,)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._falls: list[tuple[int, float]] = []  # steps, entropy that many steps ago

    def judge(self, frame: Frame) -> Reading | None:
        entropy = frame.signals.entropy
        if entropy.value is None:
            return None
        if entropy.count < _FEWEST:
            return warming(_FEWEST - entropy.count)
        now = entropy.then(0)
        assert now is not None  # three values are there
        spans = _SPANS if entropy.count >= _SPANS[0] + 3 else (entropy.count - 3,)  # from the first values
        self._falls = [(n, then) for n in spans if (then := entropy.then(n)) is not None and then > _NOTHING_LEFT]
        reading = self.compare(
            f"entropy {number(now)}",
            lambda limits: [self._falling(limits, now, frame.signals), *self._low(limits, entropy)],
        )
        level = worst(self._low(self.limits.raising, entropy))
        if level == reading.raw > Level.OK:
            start = f" (started at {number(entropy.start)})" if entropy.start is not None else ""
            return replace(reading, message=f"entropy {number(entropy.ema)}{start}")
        if not self._falls:
            return reading
        steps, then = min(self._falls, key=lambda fall: self._severity(now, fall))
        verb = "fell" if now < then else "went"
        return replace(reading, message=f"entropy {moved(verb, then, now, f' in {steps} steps')}")

    def _falling(self, limits: Mapping[str, float], now: float, signals: Signals) -> Clause:
        noise = signals.entropy.noise
        rungs = [
            Rung(
                level,
                "<",
                min(limits[f"{name}.ratio_{max(n, _SPANS[0])}"], 1 / swing(limits[f"{name}.sigmas"], noise)) * then,
            )
            for level, name in SERIOUS
            for n, then in self._falls
        ]
        return Clause(now, eased(rungs, signals.reward.rises), "median of 3 steps", keys.ENTROPY, POSITIVE)

    def _low(self, limits: Mapping[str, float], entropy: Entropy) -> Sequence[Clause]:
        """The absolute part: a smoothed entropy near zero, and low against where it started."""
        if not self.config.token_mean:
            return []
        lowest = [Rung(Level.NOTICE, "<", limits["notice.value"])]
        near = [
            Rung(level, "<", min(limits[f"{name}.value"], limits[f"{name}.start"] * entropy.start))
            for level, name in SERIOUS
            if entropy.start is not None
        ]
        return [
            Clause(entropy.ema, rungs, "smoothed", keys.ENTROPY, POSITIVE, fixed)
            for rungs, fixed in ((lowest, True), (near, False))
        ]

    def _severity(self, now: float, fall: tuple[int, float]) -> float:
        """How close the fall over some steps is to its WARN limit: below 1 it has crossed it."""
        steps, then = fall
        return now / (self.limits.raising[f"warn.ratio_{max(steps, _SPANS[0])}"] * then)


class EntropyRise(Rule):
    """Entropy far above its usual, its beginning or what it was long ago, or near the top: the policy babbles.

    Far is also beyond its own noise, which is large with few prompts a step. The top is the logarithm of the
    vocabulary: all tokens equally likely. Close below it nothing is sampled but noise, also where the run began there
    (a temperature of 3). A rise that only leads back to where the entropy was within the last 100 steps is a NOTICE at
    most.
    """

    id = "ENT-2"
    name = "Entropy rise"
    family = "entropy"
    needs = (keys.ENTROPY,)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._usual = Baseline(20)
        self._top = math.log(setup.vocabulary) if setup.vocabulary else math.nan

    def judge(self, frame: Frame) -> Reading | None:
        x = frame.signals.entropy.value
        if x is None:
            return None
        if len(self._usual) < 3:
            self._usual.add(x)
            return warming(4 - len(self._usual))
        usual, back = self._usual.low, x <= self._usual.high
        top = f" (highest possible {number(self._top)})" if x >= self.limits.raising["warn.top"] * self._top else ""
        noise = frame.signals.entropy.noise
        reading = self.compare(
            f"entropy {number(x)} vs usual {number(usual)}{top}",
            lambda limits: [self._above(limits, x, usual, back, noise)],
        )
        self._usual.add(x, refused=reading.raw > Level.OK and not back)  # nothing is learned from a rise
        return reading

    def _above(self, limits: Mapping[str, float], x: float, usual: float, back: bool, noise: float) -> Clause:
        start, rungs = self._usual.first, list[Rung]()
        for level, name in FLAGS:
            offset, beyond = limits[f"{name}.offset"], swing(limits[f"{name}.sigmas"], noise)
            above = max(limits[f"{name}.ratio"] * usual + offset, beyond * usual)
            rungs.append(Rung(Level.NOTICE if back else level, ">=", above))
            if level == Level.NOTICE:  # the beginning and the top have limits for what is serious
                continue
            rungs.append(Rung(level, ">=", max(limits[f"{name}.start"] * start + offset, beyond * start)))
            if math.isfinite(self._top):
                rungs.append(Rung(level, ">=", max(limits[f"{name}.top"] * self._top, _BABBLE * start)))
        if math.isfinite(self._top):
            rungs.append(Rung(Level.WARN, ">=", limits["warn.noise"] * self._top))
        return Clause(x, rungs, metric=keys.ENTROPY)


class LowEntropy(Rule):
    """Little entropy left and no progress: not a fault, but probably all that the run can give."""

    id = "ENT-3"
    name = "Low entropy"
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
        waited, most = reward.steps_since_best, self.limits.raising["notice.steps"]
        said = f"entropy / initial entropy, no reward gain for {number(most)} steps"
        reading = self.compare(
            f"entropy is {number(100 * share)} % of its initial value",
            lambda limits: [Clause(share if waited > most else math.nan, ladder(limits, "start", "<"), said)],
        )
        ending = f" and the reward has not improved for {waited} steps" if reading.raw else ""
        return replace(reading, message=reading.message + ending)
