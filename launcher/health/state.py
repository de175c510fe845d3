"""The state machine that every rule goes through: debounced rises, slow releases."""

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from launcher.health.clauses import Clause, worst
from launcher.record.levels import Level

_CALM = 30  # steps in which few changes of the level are expected
LASTING = ", flagged if it persists"  # of a row that is still OK: what it says is no complaint yet


@dataclass(slots=True)
class Reading:
    """What a rule says about one step.

    `raw` comes from the raise limits, `hold` from the looser release limits (the same as `raw` where a rule
    has none); both come from the clauses. A `raw` of WARM or N-A means that the step could not be judged, and
    `message` says why. `usual` is what the figure is compared with, where it is compared with its own past.
    """

    raw: Level
    message: str
    hold: Level | None = None
    raising: Sequence[Clause] = ()
    releasing: Sequence[Clause] = ()
    usual: float | None = None
    later: Callable[[], str] | None = None  # makes the message when it is asked for; only of a level of OK
    worse: float = math.nan  # the metric itself, turned so that more is worse; nan where it has no such direction


class State:
    """Level of one rule over time.

    Raises when at least `count` of the last `window` raw levels reach a level; releases when the last
    `release` hold levels are all below the state: of a rule with `count` above 1 as many more for every
    change of the level in the last 30 steps. It never releases while the metric gets worse; a flag whose metric has got
    worse at each of the last steps rises at once with a fixed limit, as it is not a single odd step. `since` is the
    step of the last rise, `cleared` that of the last return to OK and `was` the worst level before it.
    """

    def __init__(self, count: int = 2, window: int = 3, release: int = 5) -> None:
        self._count = count
        self._raws: deque[Level] = deque(maxlen=window)
        self._release = release
        self._holds: deque[Level] = deque(maxlen=max(release, _CALM))
        self._worse: deque[float] = deque(maxlen=release + 1)
        self._changes: deque[int] = deque(maxlen=3)  # readings at which the level changed
        self._read = 0
        self.level = Level.WARM
        self._message = "waiting for the first step"
        self._later: Callable[[], str] | None = None
        self.since: int | None = None
        self.cleared: int | None = None
        self.was: Level | None = None
        self.reading: Reading | None = None  # the last one that was a judgement

    @property
    def message(self) -> str:
        """What the rule says."""
        if self._later is not None:
            self._message, self._later = self._later(), None
        return self._message

    def push(self, step: int, reading: Reading) -> None:
        """Takes in the judgement of one step."""
        raw = reading.raw
        if raw < Level.OK:
            if self.level < Level.OK or raw == Level.N_A:  # never back to WARM
                self.set(step, raw, reading.message)
            return
        self.reading = reading
        state = max(self.level, Level.OK)
        self._raws.append(raw)
        self._holds.append(max(raw, reading.hold if reading.hold is not None else raw))
        self._worse.append(reading.worse)
        self._read += 1
        if raw == state == Level.OK:  # most steps
            self.level, self._message, self._later = state, reading.message, reading.later
            return
        raised = self._raised()
        if state > Level.OK and self._gets_worse():
            raised = max(raised, worst(clause for clause in reading.raising if clause.fixed))
        if raised > state:
            state = raised
            self._holds.clear()
        elif state > Level.OK:
            state = min(state, self._left())
        if state != max(self.level, Level.OK):
            self._changes.append(self._read)
        said = reading.message if reading.later is None else reading.later()
        message = said if raw >= state or state == Level.OK else self.message
        self.set(step, state, message + LASTING if raw > state == Level.OK else message)

    def set(self, step: int, level: Level, message: str) -> None:
        """Puts the state to `level` at once (rules on the clock and on log lines have no debounce)."""
        if level > max(self.level, Level.OK):
            self.was = level if self.since is None or self.was is None else max(level, self.was)
            self.since, self.cleared = step, None
        elif level <= Level.OK < self.level:
            self.since, self.cleared = None, step
        self.level = level
        self._message, self._later = message, None

    def _left(self) -> Level:
        """The level to which the flag may fall; CRITICAL while it may not."""
        recent = sum(self._read - change < _CALM for change in self._changes)
        needed = self._release * (max(recent, 1) if self._count > 1 else 1)
        held = list(self._holds)[-needed:]
        *before, now = self._worse
        return Level.CRITICAL if len(held) < needed or (before and now > max(before)) else max(held)

    def _gets_worse(self) -> bool:
        full = len(self._worse) == self._worse.maxlen
        return full and self._release > 1 and all(a < b for a, b in pairwise(self._worse))

    def _raised(self) -> Level:
        """The highest level that enough of the recent raw levels reach."""
        reached = sorted(self._raws, reverse=True)
        return reached[self._count - 1] if len(reached) >= self._count else Level.OK
