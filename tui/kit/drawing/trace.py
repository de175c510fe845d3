"""Turns the points of a curve into the dot columns of a chart."""

import math
import statistics
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from tui.kit.drawing.glyphs import BRAILLE
from tui.kit.drawing.plot import Axis, Points
from tui.kit.drawing.rows import Row, Span, joined

_STEEP = 4  # dots of a cell that are a spike
_BITS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))


class Canvas:
    """`columns` × `rows` cells; dot (0, 0) is upper left, outside dots are ignored. A cell has its last dot's role."""

    def __init__(self, columns: int, rows: int) -> None:
        self.columns, self.rows = columns, rows
        self.width, self.height = columns * 2, rows * 4
        self._dots = [bytearray(columns) for _ in range(rows)]
        self._roles = [[""] * columns for _ in range(rows)]

    def dot(self, x: int, y: int, role: str) -> None:
        if 0 <= x < self.width and 0 <= y < self.height:
            self._dots[y // 4][x // 2] |= _BITS[y % 4][x % 2]
            self._roles[y // 4][x // 2] = role

    def upright(self, x: int, top: int, bottom: int, role: str) -> None:
        """A vertical stroke, both ends included, in either order."""
        if top > bottom:
            top, bottom = bottom, top
        for y in range(max(top, 0), min(bottom, self.height - 1) + 1):
            self.dot(x, y, role)

    def line(self, x0: int, y0: int, x1: int, y1: int, role: str) -> None:
        """A stroke from one dot to another, column by column, without gaps. `x1` is not left of `x0`."""
        run = x1 - x0
        if run == 0:
            self.upright(x0, y0, y1, role)
            return
        at = y0
        for x in range(x0, x1 + 1):
            y = y0 + round((y1 - y0) * (x - x0) / run)
            self.upright(x, at + (y > at) - (y < at) if x > x0 else y, y, role)
            at = y

    def lay(self, other: "Canvas", dash: str) -> None:
        """Draws another curve over this one, except at blanks of the pattern `dash`, unless steep."""
        for row, found in enumerate(other._dots):
            for column, dots in enumerate(found):
                if dots and (dash[column % len(dash)] != " " or dots.bit_count() >= _STEEP):
                    self._dots[row][column] |= dots
                    self._roles[row][column] = other._roles[row][column]

    def row(self, index: int) -> list[Span | None]:
        """One row of cells; None for cells without a dot."""
        return [
            (chr(BRAILLE + dots), role) if dots else None
            for dots, role in zip(self._dots[index], self._roles[index], strict=True)
        ]


Part = list[tuple[int, float, float]]  # dot column, lowest and highest value


class Window(NamedTuple):
    """The visible range of x, in `width` columns of dots or of cells."""

    axis: Axis
    first: float
    last: float
    width: int

    def column(self, step: int) -> int | None:
        """The column of a step; None outside."""
        x = self.axis.place(step)
        return self.at(x) if self.first <= x <= self.last else None

    def at(self, x: float) -> int:
        """The column of an x inside the window."""
        return min(int((x - self.first) * self.width // self._extent), self.width - 1)

    def edges(self) -> list[int]:
        """Column `i` holds the steps from edge `i` to before edge `i + 1`."""
        extent = self._extent
        inner = [self.axis.step_at(self.first + i * extent / self.width) for i in range(self.width)]
        return [*inner, self._end]

    def bounds(self, steps: Sequence[int]) -> tuple[int, int]:
        """The indices of the steps inside."""
        return bisect_left(steps, self.axis.step_at(self.first)), bisect_left(steps, self._end)

    @property
    def _extent(self) -> float:
        return (self.last - self.first + self.axis.unit) or 1.0

    @property
    def _end(self) -> int:
        """The first step right of the window."""
        return self.axis.step_at(math.nextafter(self.last, math.inf))


def trace(points: Points, window: Window, *, positive: bool) -> list[Part]:
    """The unbroken parts of a curve. Few points are drawn one by one, many as columns from minimum to maximum.

    `positive`: draws only positive values; a column with others starts at the bottom.
    """
    start, stop = window.bounds(points.steps)
    least = 0.0 if positive else -math.inf
    entries: list[tuple[int, float, float] | None] = []
    if stop - start <= window.width:
        for step, value in zip(points.steps[start:stop], points.values[start:stop], strict=True):
            column = window.column(step)
            shown = column is not None and math.isfinite(value) and value > least
            entries.append((column or 0, value, value) if shown else None)
        return _parts(entries)
    edges = window.edges()
    for column in range(window.width):
        found = points.span(edges[column], edges[column + 1] - 1)
        entries.append((column, found.low, found.high) if found and found.high > least else None)
    return _parts(entries)


def _parts(entries: Sequence[tuple[int, float, float] | None]) -> list[Part]:
    parts: list[Part] = [[]]
    for entry in entries:
        if entry is not None:
            parts[-1].append(entry)
        elif parts[-1]:
            parts.append([])
    return parts if parts[-1] else parts[:-1]


def spark(points: Points, last: int, columns: int) -> Row:
    """The steps 0 to `last` as a line in `columns` cells, minimum to maximum finite value, with gaps.

    The upper row of dots stays free, so that lines of neighboring rows do not touch. A column of dots shows its most
    unusual value, so that spikes stay. A metric that is not logged at every step has no gaps.
    """
    canvas = Canvas(columns, 1)
    count = min(canvas.width, last + 1)
    found = points.columns(0, last, count)
    good = [part for part in found if part]
    if not good:
        return [(" " * columns, "text")]
    low, high = min(part.low for part in good), max(part.high for part in good)
    usual = statistics.median(part.last for part in good)
    sparse = len(points.steps) < count
    before: tuple[int, int] | None = None
    for column, part in enumerate(found):
        if part:
            far = part.high if part.high - usual >= usual - part.low else part.low
            at = round(column * (canvas.width - 1) / max(count - 1, 1)), _FREE + _depth(far, low, high)
            canvas.line(*(before or at), *at, "curve")
            before = at
        elif not sparse:
            before = None
    return joined([cell or (" ", "curve") for cell in canvas.row(0)])


_FREE, _DEPTHS = 1, 3  # free rows of dots above a line, and rows of dots in it


def _depth(value: float, low: float, high: float) -> int:
    """The distance from `high` as a share; halved first, because the difference of two huge values is not finite."""
    if low == high:
        return _DEPTHS // 2
    share = (high / 2 - value / 2) / (high / 2 - low / 2 or 1.0)
    return min(int(share * _DEPTHS), _DEPTHS - 1)
