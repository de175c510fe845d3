"""MIS-2: a mismatch of rollout engine and trainer that grows."""

import math
from collections.abc import Sequence

from launcher.core.format import number
from launcher.health import keys
from launcher.health.clauses import SHARE, Clause, Measure, Values
from launcher.health.frame import Frame
from launcher.health.rules.base import Rule, Setup, warming
from launcher.health.state import Reading
from launcher.record.levels import NOTICE, OK

_WARM_UP = 8  # steps
_HIGHEST = Measure(metric=keys.PROBS_DIFF_MAX, span=SHARE)
_TOGETHER = Measure("difference while responses grow", keys.PROBS_DIFF, SHARE)


class GrowingMismatch(Rule):
    """Compares the largest probability difference with its usual, and the mean one while responses grow (MIS-2).

    Not calibrated on failing runs: a NOTICE at most.
    """

    id = "MIS-2"
    needs = (keys.PROBS_DIFF, keys.PROBS_DIFF_MAX)
    also = (keys.LENGTH,)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._mean, self._highest = (setup.signals.of(name) for name in ("VALID_DIFF", "VALID_DIFF_MAX"))
        self._length = setup.signals.of("LENGTH")

    def rate(self, frame: Frame, mean: float, highest: float) -> Reading | None:
        if math.isnan(self._mean.now):
            return None
        if self._mean.known < _WARM_UP:
            return warming(_WARM_UP - self._mean.known)
        longer = self._length.now / self._length.usual if self._length.usual > 0 else 1.0
        usual = self._mean.usual

        def message(reading: Reading) -> str:
            grown = longer >= self.limits.raising["notice.length"]
            words = f"probability difference {number(mean)} (usual {number(usual)}), highest {number(highest)}"
            return words + (f", responses {number(longer)} times as long" if grown else "")

        reading = self.compare(message, lambda limits: self._clauses(limits, longer))
        if reading.raw > OK:
            self._mean.refuse()
            self._highest.refuse()
        return reading

    def _clauses(self, limits: Values, longer: float) -> Sequence[Clause]:
        top = max(limits["notice.highest"] * self._highest.usual, limits["notice.floor"])
        together = self._mean.now if longer >= limits["notice.length"] else math.nan
        grown = (NOTICE, ">", max(limits["notice.mean"] * self._mean.usual, limits["notice.least"]))
        return [(self._highest.now, [(NOTICE, ">", top)], _HIGHEST), (together, [grown], _TOGETHER)]
