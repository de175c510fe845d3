"""Levels of the checklist, and the comparison of values with limits."""

import operator
from collections.abc import Callable
from enum import IntEnum


class Level(IntEnum):
    """The severity of a row. Ordered; `str()` gives the word for people and JSON (`N-A`, not `N_A`)."""

    N_A = -2
    WARM = -1
    OK = 0
    NOTICE = 1
    WARN = 2
    CRITICAL = 3

    def __str__(self) -> str:
        return self.name.replace("_", "-")

    @property
    def words(self) -> str:
        """The level for people; JSON has `str()`."""
        return _WORDS.get(self, str(self))

    @property
    def sign(self) -> str:
        """The sign before the word, on the screen and in reports."""
        return _SIGNS.get(self, "·")


N_A, WARM, OK, NOTICE, WARN, CRITICAL = Level  # on Python 3.11, Level.OK takes ten times as long

_SIGNS = {Level.OK: "●", Level.NOTICE: "◆", Level.WARN: "▲", Level.CRITICAL: "✖"}
_WORDS = {Level.N_A: "not judged", Level.WARM: "warming up"}
_Named = tuple[tuple[Level, str], ...]
FLAGS: _Named = ((Level.NOTICE, "notice"), (Level.WARN, "warn"), (Level.CRITICAL, "critical"))
SERIOUS: _Named = FLAGS[1:]

HOLDS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


def crossed(x: float, side: str, value: float) -> bool:
    """Whether `x side value` holds; never for nan."""
    return HOLDS[side](x, value)
