"""The content of a chart: curves, limits, marks and words, without size or color."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from launcher.metrics.store import Span as Stretch
from tui.kit.drawing.rows import Row, Span
from tui.kit.drawing.scale import stride


class Axis(Protocol):
    """Maps a run's steps to x (never falling) and back; `unit`: the width of a step if x counts steps, otherwise 0."""

    @property
    def unit(self) -> float: ...
    def place(self, step: int) -> float:
        """The x of a step."""

    def step_at(self, x: float) -> int:
        """The first step at or after `x`."""

    def label(self, x: float) -> str:
        """The short text of x."""

    def stride(self, least: float) -> float:
        """A round tick distance, at least `least`."""


class StepAxis:
    """x is the step itself."""

    unit = 1.0

    def place(self, step: int) -> float:
        return step

    def step_at(self, x: float) -> int:
        return -int(-x // 1)

    def label(self, x: float) -> str:
        return f"{x:.0f}"

    def stride(self, least: float) -> float:
        return stride(least)


STEPS = StepAxis()


class Points(Protocol):
    """The values of a curve, such as a `launcher.metrics.store.Series`. Steps ascend."""

    @property
    def steps(self) -> Sequence[int]: ...
    @property
    def values(self) -> Sequence[float]: ...
    def span(self, first: int, last: int) -> Stretch | None: ...
    def columns(self, first: int, last: int, count: int) -> Sequence[Stretch | None]: ...


@dataclass(frozen=True)
class Curve:
    """One series and its form.

    `role`: its color: `curve`, `curve-2` to `curve-4` next to it, `raw` behind a smoothed one. `label`: its name in the
    legend, which appears for two labeled curves. `sign` (one cell): drawn at its newest point and before the label, for
    screens without color. `points_only`: the points are drawn as `sign`, not joined. `axis`: maps steps to x for a run
    with other times than the chart's. `dash`: a pattern of cells whose blanks show the curves below.
    """

    points: Points
    role: str = "curve"
    label: str = ""
    sign: str = ""
    points_only: bool = False
    axis: Axis | None = None
    dash: str = ""

    def at(self, step: int) -> float | None:
        """The value of one step; None without one."""
        steps = self.points.steps
        index = bisect_left(steps, step)
        return self.points.values[index] if index < len(steps) and steps[index] == step else None


DASHES = ("", "### ", "# ", "##  ")  # one per curve in a chart, for eyes and terminals without color
FLAG = "flag"
_MOST = 15  # marks of one kind that an axis has room for; it shows all flags


@dataclass(frozen=True)
class Mark:
    """A sign on the step axis: a new flag, the start of an attempt. `what`: its word in the legend."""

    step: int
    sign: str
    role: str
    what: str = FLAG


@dataclass(frozen=True)
class Limit:
    """A level line across the chart.

    `label`: at its right end. `reach`: the range includes it. `beyond`: the side ("<" or ">") of bad values; out of
    range (nan: on another scale), such a limit is in the title. `passed`: its level is active.
    """

    value: float
    role: str = "limit"
    label: str = ""
    reach: bool = False
    beyond: str = ""
    passed: bool = False


@dataclass
class Plot:
    """All content of a chart. `note`: a sentence instead of the curves."""

    title: str
    headline: list[Row] = field(default_factory=list)  # most important first; the surplus is omitted
    curves: list[Curve] = field(default_factory=list)  # a later one covers an earlier one
    behind: Curve | None = None  # another run's curve: named in the title or omitted; not part of the range
    first: float = 0  # left end of the x axis
    last: float = 10  # right end of the x axis
    limits: list[Limit] = field(default_factory=list)  # the most important first
    marks: list[Mark] = field(default_factory=list)
    note: str | None = None
    flag: Span | None = None  # sign of the worst flag that concerns this chart, or sign and rule of the one it proves
    axis: Axis = STEPS
    log: bool = False  # a logarithmic value axis, which has no place for values of 0 and below
    cursor: int | None = None  # step of an upright line
    unit: str = ""  # unit of the values

    @property
    def seen(self) -> list[Mark]:
        """The marks between the ends of the axis, without kinds that have too many."""
        found = [mark for mark in self.marks if self.first <= self.axis.place(mark.step) <= self.last]
        counts = Counter(mark.what for mark in found)
        return [mark for mark in found if mark.what == FLAG or counts[mark.what] <= _MOST]
