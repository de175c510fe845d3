"""STALL-1: silence."""

from collections import deque

from launcher.format import duration
from launcher.health.frame import Frame
from launcher.health.rules.base import Memory, Rule, Setup, ladder
from launcher.health.series import median
from launcher.health.state import Reading
from launcher.record.levels import SERIOUS, Bound, Level, worst


class Stall(Rule):
    """The time since the last step against the usual gap between steps (saving and validation included)."""

    id = "STALL-1"
    question = "Is the run moving?"
    family = "speed"

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._clock = setup.clock
        self._gaps: deque[float] = deque(maxlen=20)
        self._waiting_since: float | None = None
        self._last_step: float | None = None
        self._live = False

    def not_applicable(self) -> str | None:
        return None if self._clock else "a file does not tell whether its run still moves"

    def judge(self, frame: Frame) -> Reading:
        if frame.t is not None:
            if self._last_step is not None:
                self._gaps.append(frame.t - self._last_step)
            self._last_step = self._waiting_since = frame.t
        return Reading(Level.OK, f"step {frame.step} is done")

    def tick(self, now: float, memory: Memory) -> Reading:
        if not self._live:  # steps before this are of an earlier attempt: the pause since then is no gap
            self._live, self._waiting_since, self._last_step = True, now, None
        waited = now - (now if self._waiting_since is None else self._waiting_since)
        if self._last_step is None or not self._gaps:
            level = worst(waited, ladder(self.limits.raising, "start", ">"))
            begun = "the start" if self._last_step is None else "the first step"
            return Reading(level, f"{'no step for ' if level else ''}{duration(waited)} since {begun}")
        usual, longest, limits = median(self._gaps), max(self._gaps), self.limits.raising
        bounds = []
        for level, name in SERIOUS:
            late = max(limits[f"{name}.median"] * usual, limits[f"{name}.longest"] * longest, limits[f"{name}.seconds"])
            bounds.append(Bound(level, ">", late))
        level, usually = worst(waited, bounds), f"(usual {duration(usual)})"
        if level:
            return Reading(level, f"no new step for {duration(waited)} {usually}")
        return Reading(level, f"{duration(waited)} since the last step {usually}")
