"""Levels of the checklist, and how a value is compared with a rule's limits."""

import operator
from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import NamedTuple


class Level(IntEnum):
    """How bad a row is. Ordered; `str()` gives the word that people and JSON see (`N-A`, not `N_A`)."""

    N_A = -2
    WARM = -1
    OK = 0
    NOTICE = 1
    WARN = 2
    CRITICAL = 3

    def __str__(self) -> str:
        return self.name.replace("_", "-")


_Named = tuple[tuple[Level, str], ...]
FLAGS: _Named = ((Level.NOTICE, "notice"), (Level.WARN, "warn"), (Level.CRITICAL, "critical"))
SERIOUS: _Named = FLAGS[1:]

_HOLDS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


class Bound(NamedTuple):
    """One limit on one series: the level is on when `x side value` holds."""

    level: Level
    side: str
    value: float

    def on(self, x: float) -> bool:
        """Whether `x` has crossed the bound; never for nan."""
        return _HOLDS[self.side](x, self.value)


def worst(x: float, bounds: Iterable[Bound]) -> Level:
    """The highest level among the bounds that `x` has crossed, else OK."""
    found = Level.OK
    for bound in bounds:
        if bound.level > found and bound.on(x):
            found = bound.level
    return found
