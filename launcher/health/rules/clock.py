"""STALL-1: silence."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace

from launcher.core.format import duration
from launcher.health.clauses import POSITIVE, Clause, Rung, ladder
from launcher.health.frame import Frame
from launcher.health.rules.base import Memory, Rule, Setup
from launcher.health.series import median
from launcher.health.state import Reading
from launcher.record.levels import SERIOUS


class Stall(Rule):
    """The time since the last step against the usual gap between steps (saving and validation included)."""

    id = "STALL-1"

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._clock = setup.clock
        self._gaps: deque[float] = deque(maxlen=20)
        self._waiting_since: float | None = None
        self._last_step: float | None = None
        self._live = False

    def not_applicable(self) -> str | None:
        return None if self._clock else "a log file does not show whether its run is still progressing"

    def judge(self, frame: Frame) -> Reading:
        if frame.t is not None:
            if self._last_step is not None:
                self._gaps.append(frame.t - self._last_step)
            self._last_step = self._waiting_since = frame.t
        return self.compare(f"step {frame.step} finished", lambda limits: self._silence(limits, 0.0))

    def tick(self, now: float, memory: Memory) -> Reading:
        if not self._live:  # steps before this are of an earlier attempt: the pause since then is no gap
            self._live, self._waiting_since, self._last_step = True, now, None
        waited = now - (now if self._waiting_since is None else self._waiting_since)
        reading = self.compare("", lambda limits: self._silence(limits, waited))
        if self._last_step is None or not self._gaps:
            begun = "the start" if self._last_step is None else "the first step"
            return replace(reading, message=f"{'no step for ' if reading.raw else ''}{duration(waited)} since {begun}")
        usually = f"(usual {duration(median(self._gaps))})"
        said = f"no new step for {duration(waited)}" if reading.raw else f"{duration(waited)} since the last step"
        return replace(reading, message=f"{said} {usually}")

    def _silence(self, limits: Mapping[str, float], waited: float) -> Sequence[Clause]:
        if self._last_step is None or not self._gaps:
            return [Clause(waited, ladder(limits, "start", ">"), "seconds without a step", span=POSITIVE)]
        usual, longest = median(self._gaps), max(self._gaps)
        rungs = [
            Rung(
                level,
                ">",
                max(limits[f"{name}.median"] * usual, limits[f"{name}.longest"] * longest, limits[f"{name}.seconds"]),
            )
            for level, name in SERIOUS
        ]
        return [Clause(waited, rungs, "seconds since the last step", span=POSITIVE)]
