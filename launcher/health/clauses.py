"""Figures with limits, which rules compare. A level and the limits shown for it come from the same clauses."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from launcher.core.format import number
from launcher.record.check import Bound
from launcher.record.levels import FLAGS, HOLDS, OK, SERIOUS, Level, crossed

SHARE = (0.0, 1.0)
POSITIVE = (0.0, math.inf)
ANY = (-math.inf, math.inf)
_ROUNDED = 1.001
_LEVELS = {name: level for level, name in FLAGS}

Rung = tuple[Level, str, float]
"""One limit of a figure: level, side, value. The level is reached when `figure side value` holds."""


class Measure(NamedTuple):
    """A compared quantity: its `words` ("" for the metric itself), with `than` as the number in them.

    `metric`: names of the metric with the same scale, () for none. `span`: possible values. `fixed`: the limits do not
    move with the run.
    """

    words: str = ""
    metric: tuple[str, ...] = ()
    span: tuple[float, float] = ANY
    fixed: bool = False
    than: float = math.nan


Clause = tuple[float, Sequence[Rung], Measure]
"""A figure at one step, its limits and its measure; the figure is nan if missing at this step or not counted."""


class Values(dict[str, float]):
    """Raise or release limits of a rule, by `<level>.<name>`, mild levels first.

    `at`: limits per level, by name. `named`: limits per name, by level.
    """

    def __init__(self, limits: Mapping[str, float]) -> None:
        super().__init__(limits)
        self.at: dict[str, dict[str, float]] = {prefix: {} for _, prefix in FLAGS}
        self.named: dict[str, list[tuple[Level, float]]] = {}
        for key, value in limits.items():
            prefix, _, name = key.partition(".")
            self.at[prefix][name] = value
            self.named.setdefault(name, []).append((_LEVELS[prefix], value))


Clauses = Callable[[Values], Sequence[Clause]]
"""A rule's clauses as a function of its limits."""


class _Limit(NamedTuple):
    """An active limit: `rung` raises its level or, if the level is already `on`, releases it.

    `rises`: the value that raises an active level, nan if the figure does not count for it.
    """

    now: float
    measure: Measure
    rung: Rung
    on: bool
    rises: float = math.nan


def ladder(limits: Values, name: str, side: str = ">=", unit: float = 1.0) -> list[Rung]:
    """One rung per level that has a limit of this name, in units of `unit`."""
    return [(level, side, value * unit) for level, value in limits.named[name]]


def rungs(
    limits: Values,
    side: str,
    value: Callable[[Mapping[str, float]], float],
    levels: Sequence[tuple[Level, str]] = SERIOUS,
) -> list[Rung]:
    """One rung for each of `levels`, at the value computed from the level's limits."""
    return [(level, side, value(limits.at[name])) for level, name in levels]


def worst(clauses: Iterable[Clause]) -> Level:
    """The highest level reached in the clauses; a share above 1 has another scale and never counts."""
    found = OK
    for now, rungs, measure in clauses:
        for level, side, value in rungs if now == now else ():  # not nan
            if level > found and HOLDS[side](now, value) and (now <= _ROUNDED or measure.span[1] != 1):
                found = level
    return found


def _possible(now: float, measure: Measure) -> float:
    """A figure; nan for a share above 1."""
    return now if now <= _ROUNDED or measure.span[1] != 1 else math.nan


def bounds(
    raising: Sequence[Clause], releasing: Sequence[Clause], level: Level, keys: Sequence[str]
) -> tuple[Bound, ...]:
    """The limits that apply at a level: release limits for active levels, raise limits for higher levels.

    Sorted by level. Omitted: limits that the figure cannot reach, and limits covered by another limit of the same
    figure for the same or a worse level. `keys`: the row's metrics.
    """
    figures: dict[tuple[str, tuple[str, ...], float | None, str], list[_Limit]] = {}
    for (now, rungs, measure), (later, looser, wider) in zip(raising, releasing, strict=True):
        now, later = _possible(now, measure), _possible(later, wider)
        for up, down in zip(rungs, looser, strict=True):
            rises = up[2] if up[0] <= level and math.isfinite(now) else math.nan
            limits = [_Limit(later, wider, (min(down[0], level), *down[1:]), True, rises)] if level else []
            limits += [_Limit(now, measure, up, on=False)] if up[0] > level else []
            for limit in limits:
                x, of = limit.now, limit.measure
                figure = of.words.format(number(of.than)), of.metric, x if math.isfinite(x) else None, up[1][0]
                if math.isfinite(limit.rung[2]):
                    figures.setdefault(figure, []).append(limit)
    return tuple(
        Bound(
            *limit.rung,
            metric=words,
            now=now,
            series=next((place for place, key in enumerate(keys) if key in limit.measure.metric), -1),
            crossed=crossed(limit.now, *limit.rung[1:]),
            holds=limit.on,
            fixed=limit.measure.fixed,
            rises=_rises(limit, shown, found),
        )
        for (words, _, now, _), found in figures.items()
        for shown in [_counting(found, level)]
        for limit in shown
    )


def _counting(limits: list[_Limit], level: Level) -> list[_Limit]:
    """The effective limits of one figure on one side, mildest first."""
    found: list[_Limit] = []
    for limit in sorted(limits, key=lambda limit: limit.rung[0], reverse=True):
        reachable = within(limit.rung, *limit.measure.span) or crossed(limit.now, *limit.rung[1:])
        if reachable and not any(_hides(worse, limit, level) or _meet(limit, worse) for worse in found):
            found = [other for other in found if other.rung[0] > limit.rung[0] or not _hides(limit, other, level)]
            found.append(limit)
    return found[::-1]


def _hides(one: _Limit, other: _Limit, level: Level) -> bool:
    """Whether `one` makes `other` irrelevant; beyond a fixed limit, a flag may have risen at once."""
    at_once = other.measure.fixed > one.measure.fixed and other.rung[0] == level
    return _covers(one.rung, other.rung) and not (at_once and crossed(other.now, other.rung[1], other.rises))


def _rises(limit: _Limit, shown: Sequence[_Limit], limits: Sequence[_Limit]) -> float | None:
    """The value that raises an active limit's level: its first limit, or a fixed one shown next to it."""
    level, side, _ = limit.rung
    beside = limit.measure.fixed and any(each.rung[0] == level and not each.measure.fixed for each in shown)
    alike = (each for each in limits if each.rung[0] == level and each.measure.fixed >= beside)
    values = [each.rises for each in alike if math.isfinite(each.rises)]
    return (min if side[0] == ">" else max)(values, default=None)


def within(rung: Rung, low: float, high: float) -> bool:
    """Whether a figure between `low` and `high` can cross a limit."""
    _, side, value = rung
    return crossed(high if side[0] == ">" else low, side, value)


def _covers(rung: Rung, other: Rung) -> bool:
    """Whether every value that crosses `other` also crosses `rung`."""
    (_, side, value), (_, beside, least) = rung, other
    if side[0] != beside[0]:
        return False
    if value == least:
        return side.endswith("=") or not beside.endswith("=")
    return value < least if side[0] == ">" else value > least


def _meet(milder: _Limit, worse: _Limit) -> bool:
    """Whether a moving limit has reached a fixed one of a milder level: `≥ 1` and `> 1`."""
    (level, side, value), (above, beside, least) = milder.rung, worse.rung
    return value == least and side[0] == beside[0] and level < above and milder.measure.fixed != worse.measure.fixed
