"""ENT-1 and ENT-2: the entropy of the policy."""

import math
from collections.abc import Sequence

from launcher.core.format import number
from launcher.health import keys
from launcher.health.clauses import POSITIVE, Clause, Measure, Rung, Values, rungs
from launcher.health.frame import Frame
from launcher.health.rules.base import Rule, Setup, moved
from launcher.health.state import Reading
from launcher.record.levels import FLAGS, N_A, NOTICE, OK, SERIOUS, WARN

_NOTHING_LEFT = 0.02  # entropies up to this value may halve without meaning
_SPANS = {span: f"ratio_{span}" for span in (5, 10, 20)}
_FEWEST = 4  # values from which a fall is judged
_ENTROPY = Measure(metric=keys.ENTROPY)
_MIDDLE, _SMOOTH = (Measure(words, keys.ENTROPY, POSITIVE) for words in ("median of 3 steps", "smoothed"))
_LOWEST = _SMOOTH._replace(fixed=True)
_ROUNDED = 1.001
_BABBLE = 1.3  # multiple of the first entropy: near the maximum, but not from the start


def _highest(setup: Setup) -> float:
    """The maximum entropy of a token."""
    return math.log(setup.vocabulary) if setup.vocabulary else math.nan


def _beyond(x: float, setup: Setup) -> Reading | None:
    """The reading of an entropy above the maximum of a token."""
    if not x > (top := _highest(setup)) * _ROUNDED:
        return None
    return Reading(N_A, f"entropy {number(x)} is above the highest possible {number(top)}: not of a token")


class EntropyCollapse(Rule):
    """Judges how fast the entropy falls and, for token means, whether it is near 0 (ENT-1)."""

    id = "ENT-1"
    worse = -1
    needs = (keys.ENTROPY,)
    reads = ("ENTROPY", "TRUE_ANSWERS")

    def rate(self, frame: Frame, x: float) -> Reading:
        entropy, answers = self.models
        if impossible := _beyond(x, self.setup):
            return impossible
        if entropy.count < _FEWEST:
            return self.warming(_FEWEST - entropy.count)
        now, count = entropy.then(0), entropy.count
        spans = _SPANS if count >= 8 else {count - 3: "ratio_5"}  # ratios to the first values
        falls = [(then, span, ratio) for span, ratio in spans.items() if (then := entropy.then(span)) > _NOTHING_LEFT]
        smooth, start = entropy.smooth, entropy.origin if entropy.settled else None

        def message(reading: Reading) -> str:
            if reading.level and reading.about(1):
                return f"smoothed entropy {number(smooth)}" + ("" if start is None else f", start {number(start)}")
            if not falls:
                return f"entropy {number(now)}; median of 3"
            warn = self.limits.raising.at["warn"]
            then, span, _ = min(falls, key=lambda fall: now / (warn[fall[2]] * fall[0]))
            during = f" in {self.config.numbering.count(span)}"
            return f"entropy {moved('fell' if now < then else 'went', then, now, during)}; medians of 3"

        def clauses(limits: Values) -> Sequence[Clause]:
            falling = []
            for level, name in SERIOUS:
                at = limits.at[name]
                beyond = 1 / entropy.swing(at["sigmas"])
                falling += [(level, "<", min(at[ratio], beyond) * then) for then, _, ratio in falls]
            found: list[Clause] = [(now, self.weighed(falling, self.reward.rises), _MIDDLE)]
            if self.config.token_mean:  # a smoothed entropy near zero, and low against where it started
                near = rungs(limits, "<", lambda at: min(at["value"], at["start"] * start)) if start is not None else []
                found += [(smooth, [(NOTICE, "<", limits["notice.value"])], _LOWEST), (smooth, near, _SMOOTH)]
            if answers.smooth > max(limits["warn.right"], answers.first) and not self.signals.harm:
                found = [(x, [(NOTICE, *rung[1:]) for rung in ladder], measure) for x, ladder, measure in found]
            return found

        reading = self.compare(message, clauses)
        reading.usual = entropy.origin if entropy.known else None
        return reading


class EntropyRise(Rule):
    """Compares the entropy with its usual, starting and past values and with the logarithm of the vocabulary (ENT-2).

    Close to that maximum, responses are noise, even from the start (a temperature of 3).
    """

    id = "ENT-2"
    worse = 1
    needs = (keys.ENTROPY,)
    reads = ("ENTROPY",)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._top = _highest(setup)

    def rate(self, frame: Frame, x: float) -> Reading:
        (entropy,) = self.models
        if impossible := _beyond(x, self.setup):
            return impossible
        if entropy.known < 3:
            return self.warming(4 - entropy.known)
        usual, past, back = entropy.low, self.reference(entropy), entropy.reached(x)

        def message(reading: Reading) -> str:
            near = x >= self.limits.raising["warn.top"] * self._top
            top = f"; highest possible {number(self._top)}" if near else ""
            return f"entropy {number(x)} vs {past()}{top}"

        reading = self.compare(message, lambda limits: [self._above(limits, x, usual, back)])
        if reading.raw > OK and not back:  # nothing is learned from a rise
            entropy.refuse()
        return reading

    def _above(self, limits: Values, x: float, usual: float, back: bool) -> Clause:
        start, top, found = self.models[0].first, self._top, list[Rung]()
        for level, name in FLAGS:
            at = limits.at[name]
            offset, beyond = at["offset"], self.models[0].swing(at["sigmas"])
            found.append((NOTICE if back else level, ">=", max(at["ratio"] * usual + offset, beyond * usual)))
            if level == NOTICE:  # other limits cover severe values near the start and the maximum
                continue
            found.append((level, ">=", max(at["start"] * start + offset, beyond * start)))
            if math.isfinite(top):
                found.append((level, ">=", max(at["top"] * top, _BABBLE * start)))
        if math.isfinite(top):
            found.append((WARN, ">=", limits["warn.noise"] * top))
        return x, self.weighed(found), _ENTROPY
