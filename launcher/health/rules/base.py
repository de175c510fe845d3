"""What every rule is made of."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

from launcher.core.format import number
from launcher.health.catalogue import rules
from launcher.health.clauses import Clauses, Rung, worst
from launcher.health.config import RunConfig
from launcher.health.fixes import Fix
from launcher.health.frame import Frame
from launcher.health.series import Baseline
from launcher.health.settings import Limits
from launcher.health.signals import Signals
from launcher.health.state import LASTING, Reading
from launcher.record.levels import Level


class Memory(NamedTuple):
    """Memory in use as a share of all there is, as sampled just now; None when unknown."""

    gpu: float | None = None
    host: float | None = None


@dataclass(frozen=True)
class Setup:
    """What a rule is built with. Memory sizes are in GiB, the vocabulary in tokens; None when unknown."""

    config: RunConfig
    limits: Limits
    gpu_total_gb: float | None = None
    host_total_gb: float | None = None
    clock: bool = True
    vocabulary: int | None = None


class Rule:
    """One row of the checklist.

    A rule keeps its own small history. `judge` gets the steps in order and returns None when a metric that it
    needs is missing from this step: then nothing about the rule moves. Its level comes from clauses, through
    `compare`: so it cannot differ from the limits that are shown. Texts, limits and advice are in rules.toml.
    """

    id: ClassVar[str]
    needs: ClassVar[tuple[tuple[str, ...], ...]] = ()  # metric keys: one of each group must be logged; drawn as well
    also: ClassVar[tuple[tuple[str, ...], ...]] = ()  # more to draw beside the explanation
    worse: ClassVar[int] = 0  # 1: more of the first metric is worse, -1: less is
    judges_validations: ClassVar[bool] = False  # whether a validation without a training step is a step for it
    rate: ClassVar[Callable[..., Reading | None]]  # the opinion on a step by the frame and the metrics in `needs`

    def __init__(self, setup: Setup) -> None:
        self.config = setup.config
        self.limits = setup.limits

    def not_applicable(self) -> str | None:
        """Why the run's configuration leaves nothing to judge; None when it does."""
        return None

    def judge(self, frame: Frame) -> Reading | None:
        """The rule's opinion on a training step."""
        values = [frame.get(names) for names in self.needs]
        reading = None if None in values else self.rate(frame, *values)
        if reading is None or not self.worse or reading.raw < Level.OK:
            return reading
        harm = frame.signals.harm if reading.raw == Level.CRITICAL and not rules()[self.id].harm else ""
        message = f"{reading.message}; {harm}" if harm else reading.message
        worse = self.worse * (values[0] or 0.0) if math.isnan(reading.worse) else reading.worse
        return replace(reading, message=message, worse=worse)

    def harms(self) -> bool:
        """Whether what the rule flags, as one of those with `harm`, damages the run now."""
        return True

    def tick(self, now: float, memory: Memory) -> Reading | None:
        """The rule's opinion between steps, about once a second of a live run; None to wait for the step."""
        return None

    def log_line(self, text: str, line: int) -> Reading | None:
        """The rule's opinion on a line of the log; None when it says nothing to it."""
        return None

    def fixes(self) -> Sequence[Fix]:
        """What to try when the rule is on."""
        return rules()[self.id].advice

    def compare(self, message: str, clauses: Clauses) -> Reading:
        """The level by the raise limits and, where they differ, by the release limits."""
        raising = releasing = clauses(self.limits.raising)
        raw = hold = worst(raising)
        if self.limits.releasing != self.limits.raising:
            releasing = clauses(self.limits.releasing)
            hold = worst(releasing)
        return Reading(raw, message, hold, raising, releasing)


class PastRule(Rule):
    """A rule on a metric that is compared with its own past."""

    size: ClassVar[int] = 20  # steps of the recent past

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._usual = Baseline(self.size)

    def warm_up(self, x: float, needed: int) -> Reading | None:
        """Takes in one of the first `needed` values, with which nothing is compared."""
        if len(self._usual) >= needed:
            return None
        self._usual.add(x)
        return warming(needed + 1 - len(self._usual))


def weighed(rungs: Sequence[Rung], signals: Signals, gains: bool = False) -> list[Rung]:
    """The limits of a change, by what it does to the run: CRITICAL needs harm, and WARN is a NOTICE while it gains.

    Where the reward is missing or young, harm is unknown, and CRITICAL stays.
    """
    levels = {Level.WARN: Level.NOTICE} if gains else {}
    if not signals.harm and signals.reward.judged:
        levels[Level.CRITICAL] = Level.WARN
    return [rung._replace(level=levels.get(rung.level, rung.level)) for rung in rungs]


def moved(verb: str, then: float, now: float, ending: str = "") -> str:
    """`fell from 0.5 to 0.4 in 5 steps`; `stays at 0.5` where both read the same."""
    before, after = number(then), number(now)
    return f"stays at {after}" if before == after else f"{verb} from {before} to {after}{ending}"


def lasting(reading: Reading) -> Reading:
    """Of a rule that counts for how long something lasts: while that is fine, its message says so."""
    return reading if reading.raw > Level.OK else replace(reading, message=reading.message + LASTING)


def warming(missing: int) -> Reading:
    """Not judged yet: so many more values are needed."""
    return Reading(Level.WARM, f"needs {missing} more step{'s' if missing != 1 else ''}")


def not_judged(reason: str) -> Reading:
    """Not applicable, found out from the data."""
    return Reading(Level.N_A, reason)
