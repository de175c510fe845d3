"""The base class of all rules."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from launcher.core.format import number
from launcher.health.applies import REASONS
from launcher.health.catalogue import families, rules
from launcher.health.clauses import Clauses, Rung, worst
from launcher.health.config import RunConfig
from launcher.health.frame import Frame
from launcher.health.metric import AGO, Metric
from launcher.health.settings import Limits
from launcher.health.signals import Signals
from launcher.health.state import LASTING, Reading
from launcher.record.fix import Fix
from launcher.record.levels import CRITICAL, NOTICE, OK, WARM, WARN, Level


@dataclass(frozen=True)
class Setup:
    """A rule's setup: memory of "GPU" and "host" in GiB, vocabulary in tokens, validation rows; None: unknown."""

    config: RunConfig
    limits: Limits
    signals: Signals
    memory: Mapping[str, float | None]
    clock: bool
    vocabulary: int | None
    validation_rows: int | None = None


class Rule:
    """One row of the checklist.

    `judge` receives the steps in order. It returns None if a required metric is missing at this step; the state then
    does not change. `compare` computes the level from clauses, so that it cannot differ from the displayed limits.
    Texts, limits and advice are in rules.toml; all rules share the models of the metrics.
    """

    id: ClassVar[str]
    needs: ClassVar[tuple[tuple[str, ...], ...]] = ()  # metric keys: one of each group must be logged; drawn as well
    also: ClassVar[tuple[tuple[str, ...], ...]] = ()  # further metrics to draw
    reads: ClassVar[tuple[str, ...]] = ()  # the metrics in `models`
    worse: ClassVar[int] = 0  # 1: more of the first metric is worse, -1: less is
    judges_validations: ClassVar[bool] = False  # whether a separate validation counts as a step
    rate: ClassVar[Callable[..., Reading | None]]  # the opinion on a step by the frame and the metrics in `needs`

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.config = setup.config
        self.limits = setup.limits
        self.signals = setup.signals
        self.reward = setup.signals.reward
        self.models = [setup.signals.of(name) for name in self.reads]
        self.flag = OK  # the level before this step
        self._of_policy = families()[rules()[self.id].family].of_policy and not rules()[self.id].harm
        self._lets_go_elsewhere = setup.limits.releasing != setup.limits.raising

    @classmethod
    def not_applicable(cls, setup: Setup) -> str | None:
        """Why the rule does not apply to the run's configuration; None if it does."""
        if setup.config.supervised and rules()[cls.id].supervised is None:
            return f"{setup.config.supervised} is not reinforcement learning"
        return REASONS[rules()[cls.id].applies](setup.config)

    def judge(self, frame: Frame) -> Reading | None:
        """The rule's reading of a training step."""
        values = list(map(frame.get, self.needs))
        reading = None if None in values else self.rate(frame, *values)
        return reading if reading is None else self.with_harm(reading, values[0] if values else None)

    def with_harm(self, reading: Reading, x: float | None) -> Reading:
        """Adds the harm to the message of a change, and the worse direction for the state."""
        if reading.raw < OK:
            return reading
        if self._of_policy:
            reading.harm = self.signals.harm
        if not self.worse:
            return reading
        if reading.raw == CRITICAL and self.signals.harm and not rules()[self.id].harm:
            reading.ending += f"; {self.signals.harm}"
        if math.isnan(reading.worse):
            reading.worse = self.worse * (x or 0.0)
        return reading

    def harms(self) -> bool:
        """Whether the change that a rule with `harm` flags damages the run now."""
        return True

    def tick(self, now: float, used: Mapping[str, float | None]) -> Reading | None:
        """The rule's reading about once per second, by used shares of "GPU" and "host" memory; None without one."""
        return None

    def log_line(self, text: str, line: int) -> Reading | None:
        """The reading of a log line; None if the rule does not judge it."""
        return None

    def fixes(self) -> Sequence[Fix]:
        """The fixes to try for an active flag."""
        return rules()[self.id].of(self.config.supervised).advice

    def compare(
        self, message: str | Callable[[Reading], str], clauses: Clauses, usual_of: Metric | None = None
    ) -> Reading:
        """The level by the raise limits and, where they differ and it matters, by the release limits.

        A value of `usual_of` at WARN or worse does not become usual. The message may be formatted later, with the
        estimates of this step.
        """
        raising = releasing = clauses(self.limits.raising)
        raw = worst(raising)
        if self._lets_go_elsewhere and (self.flag or raw):
            releasing = clauses(self.limits.releasing)
        if usual_of is not None and raw >= WARN:
            usual_of.refuse()
        return Reading(raw, message, raising, releasing, flag=self.flag)

    def weighed(self, rungs: Sequence[Rung], pays: bool = False) -> Sequence[Rung]:
        """The limits of a change, by its effect on the run: CRITICAL needs harm; WARN is a NOTICE while it pays.

        If the reward is missing or young, harm is unknown and CRITICAL stays. Beyond a hundred times its limit,
        CRITICAL also stays.
        """
        known = self.reward.judged or bool(self.config.supervised)
        levels = _SOFTER[pays, known and not self.signals.harm]
        if not levels:
            return rungs
        return [*((levels.get(level, level), side, value) for level, side, value in rungs), *extremes(rungs)]

    def warming(self, missing: int) -> Reading:
        """The reading while `missing` more values are needed."""
        return Reading(WARM, f"needs {self.config.numbering.count(missing, 'more ')}")

    def reference(self, metric: Metric) -> Callable[[], str]:
        """The words for a rise's reference value at this step: `usual 0.4`, `0.4 (first steps)`."""
        low, past = metric.low, self.since(metric)
        usual = metric.settled and low == metric.usual
        return lambda: f"usual {number(low)}" if usual else f"{number(low)} ({past})"

    def since(self, metric: Metric) -> str:
        """The words for the past value that a metric is compared with, such as `first steps`."""
        long = f"{number(self.config.numbering.span(AGO[0]))}-{self.config.numbering.count(AGO[1])} ago"
        return "first steps" if math.isnan(metric.ago) else long


_EXTREME = 100  # multiple of a CRITICAL limit above any healthy change
_SOFTER: Mapping[tuple[bool, bool], Mapping[Level, Level]] = {  # by (change pays, known to be harmless)
    (False, False): {},
    (True, False): {WARN: NOTICE},
    (False, True): {CRITICAL: WARN},
    (True, True): {WARN: NOTICE, CRITICAL: WARN},
}


def extremes(rungs: Sequence[Rung]) -> list[Rung]:
    """CRITICAL limits without conditions: a hundred times the usual CRITICAL limits."""
    return [(level, side, _EXTREME * x) for level, side, x in rungs if level == CRITICAL and side[0] == ">" and x > 0]


def moved(verb: str, then: float, now: float, ending: str = "") -> str:
    """`fell from 0.5 to 0.4 in 5 steps`; `stays at 0.5` if both numbers print equal."""
    before, after = number(then), number(now)
    return f"stays at {after}" if before == after else f"{verb} from {before} to {after}{ending}"


def signed(change: float) -> str:
    """`+0.4`, `-0.4`."""
    return f"{'+' * (change >= 0)}{number(change)}"


def distinct(one: float, other: float) -> tuple[str, str]:
    """Both numbers with enough digits to differ (six at most)."""
    found = ((number(one, digits), number(other, digits)) for digits in (3, 4, 5, 6))
    return next((pair for pair in found if pair[0] != pair[1]), (number(one), number(other)))


def lasting(reading: Reading) -> Reading:
    """The reading of a rule that counts a duration: its message while the duration is below the limits."""
    reading.lasts = True
    if reading.raw <= OK and not reading.flag:
        reading.ending = LASTING
    return reading
