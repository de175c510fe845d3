"""LEN-1, TRUNC-1 and ABORT-1: how long responses are, how many are cut off, how many are empty."""

from collections import deque
from collections.abc import Mapping, Sequence

from launcher.format import number
from launcher.health import keys
from launcher.health.frame import Frame
from launcher.health.rules.base import Rule, Setup, ladder, warming
from launcher.health.series import Baseline, sigma
from launcher.health.state import LASTING, Reading
from launcher.record.levels import FLAGS, Bound, Level, worst


class ResponseLength(Rule):
    """The mean length of a response against its usual."""

    id = "LEN-1"
    question = "Is the response length stable?"
    family = "length"
    needs = (keys.LENGTH,)
    on_chart = True

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._usual = Baseline(20)

    def weigh(self, x: float, frame: Frame) -> Reading:
        if len(self._usual) < 8:
            self._usual.add(x)
            return warming(9 - len(self._usual))
        reading = self.compare(x, f"mean response {number(x)} tokens vs usual {number(self._usual.median)}")
        self._usual.add(x, refused=reading.raw >= Level.WARN)
        return reading

    def bounds(self, limits: Mapping[str, float]) -> Sequence[Bound]:
        usual = self._usual.median
        if not usual > 0:
            return ()
        return ladder(limits, "longer", ">", unit=usual) + ladder(limits, "shorter", "<", unit=usual)


class TruncatedResponses(Rule):
    """The share of responses at the length limit: its rise over the usual, and whether it stays high."""

    id = "TRUNC-1"
    question = "Are responses cut off?"
    family = "length"
    needs = (keys.TRUNCATED,)
    on_chart = True

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._usual = Baseline(20)
        self._last: deque[float] = deque(maxlen=5)
        self._count = 0
        self._longest = setup.config.response_limit or 0.0

    def judge(self, frame: Frame) -> Reading | None:
        x = self._share(frame)
        if x is None:
            return None
        self._count += 1
        self._last.append(x)
        if len(self._usual) < 8:
            self._usual.add(x)
            return warming(9 - len(self._usual))
        usual = self._usual.median
        message = f"{number(100 * x)} % of responses hit the limit (usual {number(100 * usual)} %)"
        rising = self.compare(x, message)
        self._usual.add(x, refused=rising.raw >= Level.WARN)
        lasting = ladder(self.limits.raising, "lasting", ">")
        least = min(self._last) if self._count >= 10 else 0.0
        raw = max(rising.raw, worst(least, lasting))
        hold = worst(least, ladder(self.limits.releasing, "lasting", ">"))
        if raw == Level.OK < worst(x, lasting):
            message += LASTING
        return Reading(raw, message, max(rising.hold or rising.raw, hold))

    def bounds(self, limits: Mapping[str, float]) -> Sequence[Bound]:
        usual, noise = self._usual.median, sigma(self._usual.values)
        found = []
        for level, name in FLAGS:
            distance = max(limits[f"{name}.distance"], limits[f"{name}.sigmas"] * noise)
            found.append(Bound(level, ">", max(limits[f"{name}.share"], usual + distance)))
        return found

    def _share(self, frame: Frame) -> float | None:
        """The share of responses at the limit.

        The v1 trainer compares with the longest response of the batch, so its share is never 0: when even the
        longest is below the limit (where unknown: below an earlier one), nothing was cut off.
        """
        x, longest = frame.get(keys.TRUNCATED), frame.get(keys.LENGTH_MAX)
        if x is None or longest is None:
            return x
        if self.config.response_limit is None:
            self._longest = max(self._longest, longest)
        return 0.0 if longest < self._longest else x


class EmptyResponses(Rule):
    """The share of responses without a single token."""

    id = "ABORT-1"
    question = "Do rollouts come back empty?"
    family = "length"
    needs = (keys.EMPTY,)
    on_chart = True
    limit = ("share", ">=")

    def weigh(self, x: float, frame: Frame) -> Reading:
        return self.compare(x, f"{number(100 * x)} % of responses are empty")
