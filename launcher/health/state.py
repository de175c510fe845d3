"""The state machine of every rule: debounced rises, slow releases."""

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from launcher.health.clauses import Clause, worst
from launcher.record.levels import CRITICAL, N_A, OK, WARM, Level

_CALM = 30  # steps in which few changes of the level are expected
LASTING = "; flagged if it persists"  # for a row that is still OK: not yet a complaint
CLEARING = "clearing: "  # first of a flag that is up although the step is better, because a narrow screen cuts the end
HELD, HARM = "held: ", "; but {}"  # for a flag that does not clear because of a harm


@dataclass(slots=True)
class Reading:
    """A rule's judgement of one step.

    `raw`: the level by the raise limits; release limits may be looser. WARM or N-A: the step cannot be judged,
    `message` says why. The message is formatted on demand: most are never read. `usual`: the past value that the figure
    is compared with. `flag`: the level before the step. `lasts`: the counted condition continues, below a limit. A flag
    with `harm` does not fall.
    """

    raw: Level
    message: "str | Callable[[Reading], str]"
    raising: Sequence[Clause] = ()
    releasing: Sequence[Clause] = ()
    usual: float | None = None
    opening: str = ""  # start of the message
    ending: str = ""
    worse: float = math.nan  # the metric with more meaning worse; nan without such a direction
    flag: Level = OK
    lasts: bool = False
    harm: str = ""

    @property
    def hold(self) -> Level:
        """The level that the release limits still hold."""
        return max(self.raw, worst(self.releasing))

    @property
    def level(self) -> Level:
        """The level of the message: for a flag that may fall, the level that it keeps."""
        return self.raw if self.raw >= self.flag else min(self.hold, self.flag)

    @property
    def clauses(self) -> Sequence[Clause]:
        """The clauses that determine `level`."""
        return self.raising if self.raw >= self.flag else self.releasing

    def about(self, first: int, last: int | None = None) -> bool:
        """Whether these clauses alone have the level of the message."""
        return worst(self.clauses[first:last]) >= self.level

    def words(self) -> str:
        """The rule's message at this step."""
        message = self.message if isinstance(self.message, str) else self.message(self)
        return f"{self.opening}{message}{self.ending}"


class State:
    """Level of one rule over time.

    Rises to a level if at least `count` of the last `window` raw levels reach it. Falls if the last `release` hold
    levels are all lower; rules with `count` above 1 need as many more per level change in the last 30 steps. Never
    falls while the metric gets worse. A flag whose metric got worse at each of the last steps rises at once at a fixed
    limit, as it is not an outlier. `since`: step of the last rise. `cleared`: step of the last return to OK. `was`: the
    worst level before it.
    """

    def __init__(self, count: int = 2, window: int = 3, release: int = 5) -> None:
        self._count = count
        self._raws: deque[Level] = deque(maxlen=window)
        self._release = release
        self._holds: deque[Level] = deque(maxlen=max(release, _CALM))
        self._worse: deque[float] = deque(maxlen=release + 1)
        self._changes: deque[int] = deque(maxlen=3)  # readings at which the level changed
        self._read = 0
        self.level = WARM
        self._message: str | Reading = "waiting for the first step"
        self.since: int | None = None
        self.cleared: int | None = None
        self.was: Level | None = None
        self.reading: Reading | None = None  # the last one that was a judgement

    @property
    def message(self) -> str:
        """The rule's message at this step."""
        if isinstance(self._message, Reading):
            self._message = self._message.words()
        return self._message

    def push(self, step: int, reading: Reading) -> None:
        """Takes in the reading of one step."""
        raw = reading.raw
        if raw < OK:
            if self.level < OK or raw == N_A:  # never back to WARM
                self.set(step, raw, reading)
            return
        self.reading = reading
        self._raws.append(raw)
        self._worse.append(reading.worse)
        self._read += 1
        state = max(self.level, OK)
        if raw == state == OK:  # most steps
            self.level, self._message = OK, reading
            return
        hold = reading.hold
        self._holds.append(hold)
        # the highest level that enough of the recent raw levels reach
        reached = sorted(self._raws, reverse=True)
        raised = reached[self._count - 1] if len(reached) >= self._count else OK
        if raw > state > OK and self._gets_worse():
            raised = max(raised, worst(clause for clause in reading.raising if clause[2].fixed))
        if raised > state:
            state = raised
            self._holds.clear()
        elif hold < state and not reading.harm:
            state = min(state, self._left())
        if state != max(self.level, OK):
            self._changes.append(self._read)
        if raw > state == OK:
            reading.ending += LASTING
        elif hold == OK < state and not reading.lasts:
            reading.opening = HELD if reading.harm else CLEARING
            reading.ending += HARM.format(reading.harm) if reading.harm else ""
        self.set(step, state, reading)

    def set(self, step: int, level: Level, message: str | Reading) -> None:
        """Sets the level at once (rules on time and log lines have no debounce)."""
        if level > max(self.level, OK):
            self.was = level if self.since is None or self.was is None else max(level, self.was)
            self.since, self.cleared = step, None
        elif level <= OK < self.level:
            self.since, self.cleared = None, step
        self.level = level
        self._message = message

    def _left(self) -> Level:
        """The level to which the flag may fall; CRITICAL if it may not."""
        recent = sum(self._read - change < _CALM for change in self._changes)
        needed = self._release * (max(recent, 1) if self._count > 1 else 1)
        held = list(self._holds)[-needed:]
        *before, now = self._worse
        return CRITICAL if len(held) < needed or (before and now > max(before)) else max(held)

    def _gets_worse(self) -> bool:
        full = len(self._worse) == self._worse.maxlen
        return full and self._release > 1 and all(a < b for a, b in pairwise(self._worse))
