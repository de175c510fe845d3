"""A line chart as rows of text: title, curves in braille, axes with short labels.

Stable by design: the step axis ends at the planned total (or a rung of a ladder) and the value axis at round
numbers, so one more step changes a few cells. Spikes stay: a column shows its lowest and highest value.
A value that is not finite leaves a gap.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from textwrap import wrap
from typing import Protocol

from tui.drawing import scale
from tui.drawing.braille import Canvas
from tui.drawing.rows import Row, Span, fit, joined, spread, width
from tui.glyphs import AXIS, BASE, DOWN, LIMIT, UP

GUTTER = scale.LABEL + 1  # label and axis
_LEAST = 8  # columns of curve below which labels give way


class Stretch(Protocol):
    """Lowest, highest and last finite value of a stretch of steps."""

    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...
    @property
    def last(self) -> float: ...


class Points(Protocol):
    """What a curve is drawn from; `launcher.metrics.store.Series` is one."""

    @property
    def steps(self) -> Sequence[int]: ...
    @property
    def values(self) -> Sequence[float]: ...
    def columns(self, first: int, last: int, count: int) -> Sequence[Stretch | None]: ...


@dataclass(frozen=True)
class Curve:
    """One series and the role it is drawn in."""

    points: Points
    role: str = "curve"


@dataclass(frozen=True)
class Mark:
    """A sign on the step axis: a health flag that rose, an attempt that began."""

    step: int
    sign: str
    role: str


@dataclass(frozen=True)
class Limit:
    """A level line across the chart.

    `label` stands on its right end; of a limit out of range at the edge nearest to it, with an arrow.
    `reach`: the range is widened to hold it.
    """

    value: float
    role: str = "limit"
    label: str = ""
    reach: bool = False


@dataclass
class Plot:
    """Everything a chart shows. `note` is a sentence that stands in the place of curves."""

    title: str
    headline: list[Row] = field(default_factory=list)  # most important first; what does not fit is left out
    curves: list[Curve] = field(default_factory=list)
    last: int = 10  # right end of the step axis; the left one is step 0
    limits: list[Limit] = field(default_factory=list)  # the most important first
    marks: list[Mark] = field(default_factory=list)
    note: str | None = None
    flag: Span | None = None  # sign of the worst flag that concerns this figure


def draw(plot: Plot, columns: int, rows: int) -> list[Row]:
    """The chart in exactly `rows` rows of `columns` cells; any size is fine."""
    if columns <= 0 or rows <= 0:
        return []
    title = _title(plot, columns)
    body = rows - 1
    if body == 0:
        return [title]
    if plot.note is not None or not plot.curves:
        return [title, *_note(plot.note or "", columns, body)]
    labelled = columns >= GUTTER + _LEAST
    gutter = GUTTER if labelled else 0
    based = labelled and body >= 3
    plotted = _plot(plot, columns - gutter, body - based, gutter)
    return [title, *plotted, *([_base(plot, columns - gutter, gutter)] if based else [])]


def _title(plot: Plot, columns: int) -> Row:
    left: Row = [(" ", "text"), *([plot.flag, (" ", "text")] if plot.flag else []), (plot.title, "title")]
    right: Row = []
    for part in plot.headline:
        candidate: Row = [*right, *([(" ", "text")] if right else []), *part]
        if width(left) + width(candidate) + 2 > columns:
            break
        right = candidate
    return spread(left, [*right, (" ", "text")] if right else [], columns)


def _note(text: str, columns: int, rows: int) -> list[Row]:
    lines = wrap(text, max(columns - 2 * 3, 8))[:rows]
    above = (rows - len(lines)) // 2
    drawn: list[Row] = [[] for _ in range(above)]
    drawn += [[("   " if columns > 12 else "", "text"), (line, "dim")] for line in lines]
    drawn += [[] for _ in range(rows - len(drawn))]
    return [fit(row, columns) for row in drawn]


def _plot(plot: Plot, columns: int, rows: int, gutter: int) -> list[Row]:
    canvas = Canvas(columns, rows)
    traces = [_trace(curve.points, plot.last, canvas.width) for curve in plot.curves]
    lows = [low for trace in traces for part in trace for _, low, _ in part]
    highs = [high for trace in traces for part in trace for _, _, high in part]
    if not lows:
        return _note("no finite value yet", columns + gutter, rows)
    reached = [limit.value for limit in plot.limits if limit.reach]
    low, high, ticks = scale.value_scale(min(lows + reached), max(highs + reached), rows)

    def y_of(value: float) -> int:
        share = (high - min(max(value, low), high)) / (high - low)
        return round(share * (canvas.height - 1))

    for curve, trace in zip(plot.curves, traces, strict=True):
        for part in trace:
            _draw(canvas, [(x, y_of(bottom), y_of(top)) for x, bottom, top in part], curve.role)
    label_at = {y_of(tick) // 4: text for tick, text in zip(ticks, scale.labels(ticks), strict=True)}
    limit_at = {
        y_of(limit.value) // 4: limit for limit in reversed(plot.limits) if low <= limit.value <= high
    }
    above = [limit for limit in plot.limits if limit.value > high and limit.label]
    below = [limit for limit in plot.limits if limit.value < low and limit.label]
    drawn: list[Row] = []
    for row in range(rows):
        cells = _cells(canvas.row(row), limit_at.get(row))
        if row == 0 and above:
            nearest = min(above, key=lambda limit: limit.value)
            cells = _labelled(cells, f"{UP} {nearest.label}", nearest.role)
        if row == rows - 1 and below:
            nearest = max(below, key=lambda limit: limit.value)
            cells = _labelled(cells, f"{DOWN} {nearest.label}", nearest.role)
        axis: Row = [(f"{label_at.get(row, ''):>{scale.LABEL}}{AXIS}", "axis")] if gutter else []
        drawn.append([*axis, *joined(cells)])
    return drawn


def _cells(dots: list[Span | None], limit: Limit | None) -> list[Span]:
    """A row of the curve on blank cells, or on the line of a limit."""
    if limit is None:
        return [cell or (" ", "text") for cell in dots]
    cells = [cell or (LIMIT, limit.role) for cell in dots]
    return _labelled(cells, limit.label, limit.role) if limit.label else cells


def _labelled(cells: list[Span], label: str, role: str) -> list[Span]:
    """The label near the right end of a row, where the curve leaves room for it."""
    text = f" {label} "
    start = len(cells) - len(text) - 1
    if start <= 0 or any(char not in (" ", LIMIT) for char, _ in cells[start : start + len(text)]):
        return cells
    return [*cells[:start], *((char, role) for char in text), *cells[start + len(text) :]]


Part = list[tuple[int, float, float]]  # dot column, lowest and highest value


def _trace(points: Points, last: int, width: int) -> list[Part]:
    """The unbroken parts of a curve. Few points are drawn one by one, many as columns of extremes."""
    if len(points.steps) <= width:
        found = (
            (_column(step, last, width), value, value)
            for step, value in zip(points.steps, points.values, strict=True)
        )
        return _parts([entry if math.isfinite(entry[1]) else None for entry in found])
    columns = points.columns(0, last, width)
    return _parts([(x, part.low, part.high) if part else None for x, part in enumerate(columns)])


def _column(step: int, last: int, width: int) -> int:
    return min(step * width // (last + 1), width - 1)


def _parts(entries: Sequence[tuple[int, float, float] | None]) -> list[Part]:
    parts: list[Part] = [[]]
    for entry in entries:
        if entry is not None:
            parts[-1].append(entry)
        elif parts[-1]:
            parts.append([])
    return parts if parts[-1] else parts[:-1]


def _draw(canvas: Canvas, part: list[tuple[int, int, int]], role: str) -> None:
    """One part: upright strokes from low to high, each joined to the one before it."""
    before: tuple[int, int, int] | None = None
    for x, bottom, top in part:  # y grows downward: top <= bottom
        canvas.upright(x, top, bottom, role)
        if before is not None:
            x0, bottom0, top0 = before
            if bottom < top0:
                canvas.line(x0, top0, x, bottom, role)
            elif top > bottom0:
                canvas.line(x0, bottom0, x, top, role)
            else:  # they overlap: join at a height both have
                shared = max(top, top0)
                canvas.line(x0, shared, x, shared, role)
        before = (x, bottom, top)


def _base(plot: Plot, columns: int, gutter: int) -> Row:
    """The step axis: 0, the last step, and the marks between."""
    right = str(plot.last)
    if len(right) + 2 > columns:
        return fit([], columns + gutter)
    cells: list[Span] = [(char, "axis") for char in "0" + BASE * (columns - 1 - len(right)) + right]
    first, final = 1, columns - len(right) - 1
    for mark in plot.marks:
        if first <= final:
            at = _column(mark.step, plot.last, columns)
            cells[min(max(at, first), final)] = (mark.sign, mark.role)
    return [(" " * gutter, "axis"), *joined(cells)]
