"""What rules compare: figures with limits. A level and the limits shown for it come from the same clauses."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from launcher.record.check import Bound
from launcher.record.levels import FLAGS, HOLDS, OK, SERIOUS, Level, crossed

SHARE = (0.0, 1.0)
POSITIVE = (0.0, math.inf)
ANY = (-math.inf, math.inf)


Rung = tuple[Level, str, float]
"""One limit on one figure: the level is reached when `figure side value` holds."""


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


class Values(dict[str, float]):
    """The limits of a rule, those for raising or those for letting go, by `<level>.<name>`.

    `at` has those of a level by their names, `named` those of a name by their levels.
    """

    def __init__(self, limits: Mapping[str, float]) -> None:
        super().__init__(limits)
        self.at: dict[str, dict[str, float]] = {prefix: {} for _, prefix in FLAGS}
        self.named: dict[str, list[tuple[Level, float]]] = {}
        for level, prefix in FLAGS:
            for key, value in limits.items():
                if key.startswith(f"{prefix}."):
                    name = key.removeprefix(f"{prefix}.")
                    self.at[prefix][name] = value
                    self.named.setdefault(name, []).append((level, value))


Clauses = Callable[[Values], Sequence[Clause]]
"""A rule's clauses by its limits."""


_Limit = tuple[Clause, Rung, bool]  # with whether it is one for letting go


def ladder(limits: Values, name: str, side: str = ">=", unit: float = 1.0) -> list[Rung]:
    """One rung for each level that has a limit of this name, in units of `unit`."""
    return [(level, side, value * unit) for level, value in limits.named[name]]


def rungs(
    limits: Values,
    side: str,
    value: Callable[[Mapping[str, float]], float],
    levels: Sequence[tuple[Level, str]] = SERIOUS,
) -> list[Rung]:
    """One rung for each of `levels`, at the value that follows from the limits of the level."""
    return [(level, side, value(limits.at[name])) for level, name in levels]


def worst(clauses: Iterable[Clause]) -> Level:
    """The highest level among clauses."""
    found = OK
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
            for at, side, value in clause.rungs:
                limits = figures.setdefault((clause.figure, clause.metric, now, side[0]), [])
                if (at <= level) == holds and math.isfinite(value):
                    limits.append((clause, (at, side, value), holds))
    return tuple(_bound(*limit, keys) for limits in figures.values() for limit in _counting(limits))


def _counting(limits: list[_Limit]) -> list[_Limit]:
    """Of the limits of one figure to one side those that make a difference, the mildest first."""
    found: list[_Limit] = []
    for limit in sorted(limits, key=lambda limit: limit[1][0], reverse=True):
        clause, rung, _ = limit
        reachable = within(rung, *clause.span) or crossed(clause.now, *rung[1:])
        if reachable and not any(_covers(worse[1], rung) or _meet(limit, worse) for worse in found):
            found = [other for other in found if other[1][0] > rung[0] or not _covers(rung, other[1])]
            found.append(limit)
    return found[::-1]


def within(rung: Rung, low: float, high: float) -> bool:
    """Whether a figure between `low` and `high` can cross a limit."""
    _, side, value = rung
    return crossed(high if side[0] == ">" else low, side, value)


def _covers(rung: Rung, other: Rung) -> bool:
    """Whether whatever crosses the other one crosses this one."""
    (_, side, value), (_, beside, least) = rung, other
    if side[0] != beside[0]:
        return False
    if value == least:
        return side.endswith("=") or not beside.endswith("=")
    return value < least if side[0] == ">" else value > least


def _meet(milder: _Limit, worse: _Limit) -> bool:
    """Whether a limit that moves with the run has come to a fixed one of a milder level: `≥ 1` and `> 1`."""
    (clause, (level, side, value), _), (other, (above, beside, least), _) = milder, worse
    return value == least and side[0] == beside[0] and level < above and clause.fixed != other.fixed


def _bound(clause: Clause, rung: Rung, holds: bool, keys: Sequence[str]) -> Bound:
    return Bound(
        *rung,
        metric=clause.figure,
        now=clause.now if clause.figure and math.isfinite(clause.now) else None,
        series=next((place for place, key in enumerate(keys) if key in clause.metric), -1),
        crossed=crossed(clause.now, *rung[1:]),
        holds=holds,
        fixed=clause.fixed,
    )
