"""From the points of a curve to the dot columns of a chart."""

import math
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from tui.kit.drawing.axis import Axis
from tui.kit.drawing.plot import Points

Part = list[tuple[int, float, float]]  # dot column, lowest and highest value


class Window(NamedTuple):
    """The stretch of x that a chart shows, in `width` columns of dots or of cells."""

    axis: Axis
    first: float
    last: float
    width: int

    def column(self, step: int) -> int | None:
        """The column a step falls into; None when it is outside."""
        x = self.axis.place(step)
        if not self.first <= x <= self.last:
            return None
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
    """The unbroken parts of a curve. Few points are drawn one by one, many as columns of extremes.

    `positive`: only values above 0 have a place; a column that also holds others begins at its floor.
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
