"""MIS-2: a growing mismatch of rollout engine and trainer."""

import math
from collections.abc import Sequence

from launcher.core.format import number
from launcher.health import keys
from launcher.health.clauses import SHARE, Clause, Measure, Values
from launcher.health.frame import Frame
from launcher.health.rules.base import Rule
from launcher.health.state import Reading
from launcher.record.levels import NOTICE, OK, WARN

_WARM_UP = 8  # steps
_SMOOTH, _SMOOTH_KL = (Measure("smoothed", names) for names in (keys.PROBS_DIFF, keys.ROLLOUT_KL))
_HIGHEST = Measure(metric=keys.PROBS_DIFF_MAX, span=SHARE)
_TOGETHER = Measure("difference while responses grow", keys.PROBS_DIFF, SHARE)


class GrowingMismatch(Rule):
    """Compares the largest probability difference with its usual value, and the mean one while responses grow (MIS-2).

    Both are a NOTICE at most, as they are not calibrated on failing runs. At many times the starting value, either is a
    WARN.
    """

    id = "MIS-2"
    needs = (keys.PROBS_DIFF, keys.PROBS_DIFF_MAX)
    worse = 1
    also = (keys.LENGTH, keys.ROLLOUT_KL)
    reads = ("VALID_DIFF", "VALID_DIFF_MAX", "LENGTH", "ROLLOUT_KL")

    def rate(self, frame: Frame, mean: float, highest: float) -> Reading | None:
        diff, most, length, kl = self.models
        if math.isnan(diff.now):
            return None
        if diff.known < _WARM_UP:
            return self.warming(_WARM_UP - diff.known)
        longer = length.now / length.usual if length.usual > 0 else 1.0
        usual = diff.usual

        def message(reading: Reading) -> str:
            grown = longer >= self.limits.raising["notice.length"]
            words = f"probability difference {number(mean)} (usual {number(usual)}); highest {number(highest)}"
            for place, (name, each) in enumerate({"probability difference": diff, "rollout KL": kl}.items()):
                if reading.level and reading.about(place, place + 1):
                    return f"{name} {number(each.smooth)} vs {number(each.start)}; smoothed, and in the first steps"
            return words + (f"; responses {number(longer)} times as long" if grown else "")

        def clauses(limits: Values) -> Sequence[Clause]:
            top = max(limits["notice.highest"] * most.usual, limits["notice.floor"])
            together = diff.now if longer >= limits["notice.length"] else math.nan
            grown = (NOTICE, ">", max(limits["notice.mean"] * usual, limits["notice.least"]))
            start = limits["warn.start"]
            return [
                (diff.smooth, [(WARN, ">", max(start * diff.start, limits["warn.diff"]))], _SMOOTH),
                (kl.smooth, [(WARN, ">", max(start * abs(kl.start), limits["warn.kl"]))], _SMOOTH_KL),
                (most.now, [(NOTICE, ">", top)], _HIGHEST),
                (together, [grown], _TOGETHER),
            ]

        reading = self.compare(message, clauses)
        if reading.raw > OK:
            diff.refuse()
            most.refuse()
        return reading
