"""Logged lines without step numbers: counted, and ordered by values that grow from line to line."""

import math
from array import array
from bisect import bisect_left
from collections.abc import Mapping

from launcher.metrics.frameworks import Framework
from launcher.record.numbering import Numbering

_ABOUT = 1.5  # gaps between two lines that are one gap, give or take its rounding
_FIRST = 0.75  # intervals below which the first line is the first step
_COARSE, _NEAR = 0.02, 11  # limit for intervals with two decimals; lines whose intervals are compared


class Counted:
    """The counted lines of a console, after those `before`.

    `grown`: the growing value per line, such as the epoch; `name`: its name.
    """

    def __init__(self, framework: Framework, before: int = 0) -> None:
        self._before, self.name = before, ""
        self.grown = array("d")
        self._framework, self._begun, self._every = framework, 0, framework.every

    def add(self, row: Mapping[str, float]) -> int:
        """The number of the next line; a restart without earlier growth continues the count."""
        self.name = self.name or next((name for name in self._framework.grows if name in row), "")
        value = row.get(self.name, math.nan)
        if self.grown and value < self.grown[-1]:
            self._begun = bisect_left(self.grown, value)
            del self.grown[self._begun :]
        self.grown.append(value)
        return self._before + len(self.grown)

    def end(self, row: Mapping[str, float]) -> None:
        """Takes in the final line of a training, with its duration and steps per second."""
        begun, self._begun = self._begun, len(self.grown)
        seconds, rate = (row.get(name, 0.0) for name in self._framework.rate or ("", ""))
        lines = self._begun - begun - self._first
        if self._every or not self._from_start(begun) or seconds <= 0 or rate <= 0:
            return
        if row.get(self.name) != self.grown[-1]:  # steps behind the last logged line
            return
        sides = ((seconds + side * _rounding(seconds)) * (rate + side * _rounding(rate)) for side in (-1, 1))
        low, high = (steps / lines for steps in sides)
        if math.ceil(low) == math.floor(high) > 0:
            self._every = math.ceil(low)

    @property
    def numbering(self) -> Numbering:
        return Numbering(self._every, self._first and self._every != 1)

    def compared(self, later: "Counted") -> str:
        """The evidence on whether a later part continues this one."""
        if not (self.name and self.name == later.name):
            return f"its lines lack {' and '.join(self._framework.grows)}"
        return f"{self.name} {later.grown[0]:g} at its first line, {self.grown[0]:g} to {self.grown[-1]:g} before"

    def place(self, later: "Counted") -> int | None:
        """The number of lines before a later part; None if it does not continue this one."""
        if not self.grown or not later.grown or self.name != later.name or later._from_start(0) is not False:
            return None
        value, gap = later.grown[0], (self.grown[-1] - self.grown[0]) / max(len(self.grown) - 1, 1)
        if not self.grown[0] < value <= self.grown[-1] + _ABOUT * gap:
            return None
        return bisect_left(self.grown, value)

    def _ratio(self, begun: int) -> float:
        """The growth at the first line of a part, in intervals of its next lines; nan if unknown."""
        first, *others = self.grown[begun : begun + _NEAR] or (math.nan,)
        gap = (others[-1] - others[0]) / (len(others) - 1) if len(others) > 1 else 0.0
        coarse = gap < _COARSE and all(round(x, 2) == x for x in (first, *others))
        return first / gap if gap > 0 and not coarse else math.nan

    @property
    def _first(self) -> bool:
        return self._ratio(0) < _FIRST

    def _from_start(self, begun: int) -> bool | None:
        """Whether a part begins with the training; None if unknown."""
        ratio = self._ratio(begun)
        return None if math.isnan(ratio) else ratio < _ABOUT


def _rounding(value: float) -> float:
    """The rounding error of the last printed digit: of four significant ones, or of the present decimals."""
    decimals = len(repr(value).partition(".")[2].partition("e")[0])
    return 0.5 * 10.0 ** max(-decimals, math.floor(math.log10(value)) - 3)
