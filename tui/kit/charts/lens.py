"""Shows a screen's plots through its view: window, x axis, smoothing, log scale, cursor."""

import math
from dataclasses import dataclass, replace
from typing import Any

from launcher.core.format import number
from launcher.metrics.store import Series, SeriesStore
from tui.kit.charts.axes import SpentAxis, time_axis, time_limit, token_axis
from tui.kit.charts.view import STEP, TIME, TOKENS, View, Whole
from tui.kit.drawing.plot import STEPS, Curve, Plot
from tui.kit.drawing.rows import Row
from tui.kit.drawing.scale import step_limit

_MOST = 24  # averages that are kept; a screen shows about ten


class Average:
    """The debiased exponential moving average of a series, computed before a chart reduces values to columns.

    A non-finite value leaves a gap and does not change the average. `weight`, below 1: share of the past in the
    average.
    """

    def __init__(self, source: Series, weight: float) -> None:
        self.source, self.weight = source, weight
        self._begin()

    def _begin(self) -> None:
        self._series = Series()
        self._cuts = self.source.cuts
        self._sum = self._total = 0.0

    def follow(self) -> Series:
        """The average of all values so far; computes only new ones."""
        source = self.source
        if source.cuts != self._cuts:  # a resumed attempt repeats steps
            self._begin()
        for at in range(len(self._series), len(source)):
            self._series.append(source.steps[at], self._add(source.values[at]))
        return self._series

    def _add(self, value: float) -> float:
        if not math.isfinite(value):
            return math.nan
        self._sum = self.weight * self._sum + (1 - self.weight) * value
        self._total = self.weight * self._total + 1 - self.weight
        return self._sum / self._total


class Smoothing:
    """The averages of a screen's series."""

    def __init__(self) -> None:
        self._known: dict[int, Average] = {}  # by identity of the series

    def of(self, series: Series, weight: float) -> Series:
        """The average of a series."""
        known = self._known.get(id(series))
        if known is None or known.weight != weight:
            self._known.pop(id(series), None)
            if len(self._known) >= _MOST:
                del self._known[next(iter(self._known))]
            known = self._known[id(series)] = Average(series, weight)
        return known.follow()


@dataclass(frozen=True)
class _Known:
    """An axis of a run, and its source steps."""

    steps: int
    newest: int | None
    axis: SpentAxis | None


class Lens:
    """Caches averages, and the axes of time and tokens."""

    def __init__(self) -> None:
        self.view = View()
        self._smoothing = Smoothing()
        self._axes: dict[tuple[int, str], _Known] = {}  # by identity of the store, and the kind of x

    def whole(self, store: SeriesStore, total: Any) -> Whole:
        """The steps of a run, usually with room for future ones."""
        newest = store.last_step or 0
        if self.view.fitted:
            return Whole(min(store.steps[0], newest - 1) if store.steps else 0, max(newest, 1), newest)
        return Whole(0, step_limit(newest, total if isinstance(total, int) else None), newest)

    def axis(self, store: SeriesStore, across: str) -> SpentAxis | None:
        """A run's axis of time or tokens; None if not logged."""
        known = self._axes.get((id(store), across))
        made_of = (len(store.steps), store.last_step)
        if known is None or (known.steps, known.newest) != made_of:
            axis = time_axis(store) if across == TIME else token_axis(store)
            known = self._axes[id(store), across] = _Known(*made_of, axis)
        return known.axis

    def look(self, plot: Plot, store: SeriesStore, total: Any) -> Plot:
        """The part of a run's plot in the view."""
        view = self.view
        plot.axis = self.frame(plot, store, total) or STEPS
        plot.cursor = view.cursor
        raw, plot.curves = plot.curves, self.smoothed(plot.curves)
        if view.cursor is not None and raw:
            plot.headline = cursor_headline(raw, view.cursor)
            if len(plot.curves) > len(raw):  # an average before its raw curve
                average = plot.curves[1].at(view.cursor)
                plot.headline += [[(f"average {number(average)}", "dim")]] if average is not None else []
        return plot

    def frame(self, plot: Plot, store: SeriesStore, total: Any) -> SpentAxis | None:
        """Applies the ends and scale of the view to a plot. Returns its x axis, None for steps."""
        view = self.view
        spent = self.axis(store, view.across) if view.across != STEP else None
        whole = self.whole(store, total)
        plot.first, plot.last = _spent_ends(spent, view, whole) if spent else view.shown(whole)
        plot.log = view.log
        return spent

    def smoothed(self, curves: list[Curve]) -> list[Curve]:
        """The averages of the curves; behind a single curve the raw one stays."""
        weight = self.view.smoothing
        if not weight:
            return curves
        lines = [curve for curve in curves if not curve.points_only]
        raw = [replace(curve, role="raw", label="", sign="") for curve in lines] if len(lines) == 1 else []
        return [*raw, *(curve if curve.points_only else self._average(curve, weight) for curve in curves)]

    def _average(self, curve: Curve, weight: float) -> Curve:
        assert isinstance(curve.points, Series)
        return replace(curve, points=self._smoothing.of(curve.points, weight))


def cursor_headline(curves: list[Curve], step: int, at: int | None = None) -> list[Row]:
    """`at 120: 0.412`, and the other curves' values in their colors; `at` is the step if `step` indexes a sample."""
    parts: list[Row] = []
    lines = sum(not curve.points_only for curve in curves)
    for curve in curves:
        value = curve.at(step)
        if parts and value is None:
            continue
        name = f"{curve.sign} " if curve.sign and len(curves) > 1 else ""
        before = "" if parts else f"at {step if at is None else at}: "
        role = "title" if lines == 1 and not curve.points_only else curve.role
        parts.append([(before, "dim"), (f"{name}{number(value)}", role)])
    return parts


def _spent_ends(axis: SpentAxis, view: View, whole: Whole) -> tuple[float, float]:
    """The ends of a time or token axis: round ones during a run, so that columns stay."""
    if view.window is not None or view.fitted:
        first, last = view.shown(whole)
        return axis.place(first), axis.place(last)
    if whole.last == whole.newest:
        return 0.0, axis.end
    if view.across == TOKENS:
        return 0.0, float(step_limit(int(axis.end) + 1, None))
    return 0.0, time_limit(axis.end)
