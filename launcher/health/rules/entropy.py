"""ENT-1 to ENT-3: how undecided the policy is."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from launcher.core.format import number
from launcher.health import keys
from launcher.health.clauses import POSITIVE, Clause, Rung, ladder, rungs, worst
from launcher.health.frame import Frame
from launcher.health.rules.base import PastRule, Rule, Setup, moved, warming, weighed
from launcher.health.series import swing
from launcher.health.signals import Entropy, Signals
from launcher.health.state import Reading
from launcher.record.levels import FLAGS, SERIOUS, Level

_NOTHING_LEFT = 0.02  # entropies at or below this say nothing when they halve
_SPANS = (5, 10, 20)
_FEWEST = 4  # values from which a fall is judged
_BABBLE = 1.3  # times the first entropy: near the top of what it can be, and not from the beginning


class EntropyCollapse(Rule):
    """Judges how fast the entropy falls, and of token means whether it has run out (ENT-1)."""

    id = "ENT-1"
    worse = -1
    needs = (keys.ENTROPY,)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._falls: list[tuple[int, float]] = []  # steps, entropy that many steps ago

    def rate(self, frame: Frame, x: float) -> Reading:
        entropy = frame.signals.entropy
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
        falling = [
            Rung(
                level,
                "<",
                min(limits[f"{name}.ratio_{max(n, _SPANS[0])}"], 1 / swing(limits[f"{name}.sigmas"], noise)) * then,
            )
            for level, name in SERIOUS
            for n, then in self._falls
        ]
        return Clause(now, weighed(falling, signals, signals.reward.rises), "median of 3 steps", keys.ENTROPY, POSITIVE)

    def _low(self, limits: Mapping[str, float], entropy: Entropy) -> Sequence[Clause]:
        """The absolute part: a smoothed entropy near zero, and low against where it started."""
        if not self.config.token_mean:
            return []
        lowest = [Rung(Level.NOTICE, "<", limits["notice.value"])]
        start = entropy.start
        near = [] if start is None else rungs(limits, "<", lambda at: min(at("value"), at("start") * start))
        return [
            Clause(entropy.ema, limit, "smoothed", keys.ENTROPY, POSITIVE, fixed)
            for limit, fixed in ((lowest, True), (near, False))
        ]

    def _severity(self, now: float, fall: tuple[int, float]) -> float:
        """How close the fall over some steps is to its WARN limit: below 1 it has crossed it."""
        steps, then = fall
        return now / (self.limits.raising[f"warn.ratio_{max(steps, _SPANS[0])}"] * then)


class EntropyRise(PastRule):
    """Compares the entropy with its usual, its beginning, its past and the logarithm of the vocabulary (ENT-2).

    Close below that maximum responses are noise, also where the run began there (a temperature of 3).
    """

    id = "ENT-2"
    worse = 1
    needs = (keys.ENTROPY,)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._top = math.log(setup.vocabulary) if setup.vocabulary else math.nan

    def rate(self, frame: Frame, x: float) -> Reading:
        if (early := self.warm_up(x, 3)) is not None:
            return early
        usual, back = self._usual.low, x <= self._usual.high
        top = f" (highest possible {number(self._top)})" if x >= self.limits.raising["warn.top"] * self._top else ""
        reading = self.compare(
            f"entropy {number(x)} vs usual {number(usual)}{top}",
            lambda limits: [self._above(limits, x, usual, back, frame.signals)],
        )
        self._usual.add(x, refused=reading.raw > Level.OK and not back)  # nothing is learned from a rise
        return reading

    def _above(self, limits: Mapping[str, float], x: float, usual: float, back: bool, signals: Signals) -> Clause:
        start, noise, found = self._usual.first, signals.entropy.noise, list[Rung]()
        for level, name in FLAGS:
            offset, beyond = limits[f"{name}.offset"], swing(limits[f"{name}.sigmas"], noise)
            above = max(limits[f"{name}.ratio"] * usual + offset, beyond * usual)
            found.append(Rung(Level.NOTICE if back else level, ">=", above))
            if level == Level.NOTICE:  # the beginning and the top have limits for what is serious
                continue
            found.append(Rung(level, ">=", max(limits[f"{name}.start"] * start + offset, beyond * start)))
            if math.isfinite(self._top):
                found.append(Rung(level, ">=", max(limits[f"{name}.top"] * self._top, _BABBLE * start)))
        if math.isfinite(self._top):
            found.append(Rung(Level.WARN, ">=", limits["warn.noise"] * self._top))
        return Clause(x, weighed(found, signals), metric=keys.ENTROPY)


class LowEntropy(Rule):
    """Looks for little entropy without progress (ENT-3)."""

    id = "ENT-3"
    needs = (keys.ENTROPY, keys.SCORE)

    def rate(self, frame: Frame, x: float, score: float) -> Reading:
        entropy, reward = frame.signals.entropy, frame.signals.reward
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
