"""What rules compare: figures with limits. A level and the limits shown for it come from the same clauses."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from launcher.record.check import Bound
from launcher.record.levels import FLAGS, HOLDS, SERIOUS, Level, crossed

SHARE = (0.0, 1.0)
POSITIVE = (0.0, math.inf)
ANY = (-math.inf, math.inf)


class Rung(NamedTuple):
    """One limit on one figure: the level is reached when `figure side value` holds."""

    level: Level
    side: str
    value: float

    def covers(self, other: "Rung") -> bool:
        """Whether whatever crosses the other one crosses this one."""
        if self.side[0] != other.side[0]:
            return False
        if self.value == other.value:
            return self.side.endswith("=") or not other.side.endswith("=")
        return self.value < other.value if self.side[0] == ">" else self.value > other.value

    def within(self, low: float, high: float) -> bool:
        """Whether a figure between `low` and `high` can cross it."""
        return crossed(high if self.side[0] == ">" else low, self.side, self.value)


class Clause(NamedTuple):
    """A figure at one step, and its limits.

    `now` is nan where the step has no such figure, or where the rule does not count it. `figure` says what it
    is, "" for the metric itself; `metric` are the names of the metric that it is on the scale of, () for none.
    `span` is what it can be. `fixed` limits do not move with the run.
    """

    now: float
    rungs: Sequence[Rung]
    figure: str = ""
    metric: tuple[str, ...] = ()
    span: tuple[float, float] = ANY
    fixed: bool = False

    @property
    def level(self) -> Level:
        """The highest level whose limit the figure has crossed, else OK."""
        return worst((self,))


Clauses = Callable[[Mapping[str, float]], Sequence[Clause]]
"""A rule's clauses by its limits, which are those for raising or those for letting go."""


_Limit = tuple[Clause, Rung, bool]  # with whether it is one for letting go


def ladder(limits: Mapping[str, float], name: str, side: str = ">=", unit: float = 1.0) -> list[Rung]:
    """One rung for each level that has a limit of this name, in units of `unit`."""
    return [Rung(level, side, limits[key] * unit) for level, key in _keys(name) if key in limits]


@cache
def _keys(name: str) -> tuple[tuple[Level, str], ...]:
    return tuple((level, f"{prefix}.{name}") for level, prefix in FLAGS)


class AtLevel(NamedTuple):
    """The limits of one level, by name."""

    limits: Mapping[str, float]
    level: str

    def __call__(self, name: str) -> float:
        return self.limits[f"{self.level}.{name}"]


def rungs(
    limits: Mapping[str, float],
    side: str,
    value: Callable[[AtLevel], float],
    levels: Sequence[tuple[Level, str]] = SERIOUS,
) -> list[Rung]:
    """One rung for each of `levels`, at the value that follows from the limits of the level."""
    return [Rung(level, side, value(AtLevel(limits, name))) for level, name in levels]


def worst(clauses: Iterable[Clause]) -> Level:
    """The highest level among clauses."""
    found = Level.OK
    for now, rungs, *_ in clauses:
        for level, side, value in rungs:
            if level > found and HOLDS[side](now, value):
                found = level
    return found


def bounds(
    raising: Sequence[Clause], releasing: Sequence[Clause], level: Level, keys: Sequence[str]
) -> tuple[Bound, ...]:
    """The limits that apply at a level: for what is on, those for letting go, for what is above, those for raising.

    Left out is what the figure cannot reach, and what a limit of the same figure for the same level or a worse
    one covers: so they are in the order of their levels. `keys` are the metrics of the row.
    """
    figures: dict[tuple[object, ...], list[_Limit]] = {}
    for clauses, holds in ((raising, False), (releasing, True)):
        for clause in clauses:
            now = clause.now if math.isfinite(clause.now) else None
            for rung in clause.rungs:
                limits = figures.setdefault((clause.figure, clause.metric, now, rung.side[0]), [])
                if (rung.level <= level) == holds and math.isfinite(rung.value):
                    limits.append((clause, rung, holds))
    return tuple(_bound(*limit, keys) for limits in figures.values() for limit in _counting(limits))


def _counting(limits: list[_Limit]) -> list[_Limit]:
    """Of the limits of one figure to one side those that make a difference, the mildest first."""
    found: list[_Limit] = []
    for limit in sorted(limits, key=lambda limit: limit[1].level, reverse=True):
        clause, rung, _ = limit
        reachable = rung.within(*clause.span) or crossed(clause.now, rung.side, rung.value)
        if reachable and not any(worse[1].covers(rung) or _meet(limit, worse) for worse in found):
            found = [other for other in found if other[1].level > rung.level or not rung.covers(other[1])]
            found.append(limit)
    return found[::-1]


def _meet(milder: _Limit, worse: _Limit) -> bool:
    """Whether a limit that moves with the run has come to a fixed one of a milder level: `≥ 1` and `> 1`."""
    (clause, rung, _), (other, above, _) = milder, worse
    same = rung.value == above.value and rung.side[0] == above.side[0]
    return same and rung.level < above.level and clause.fixed != other.fixed


def _bound(clause: Clause, rung: Rung, holds: bool, keys: Sequence[str]) -> Bound:
    return Bound(
        *rung,
        metric=clause.figure,
        now=clause.now if clause.figure and math.isfinite(clause.now) else None,
        series=next((place for place, key in enumerate(keys) if key in clause.metric), -1),
        crossed=crossed(clause.now, rung.side, rung.value),
        holds=holds,
        fixed=clause.fixed,
    )
