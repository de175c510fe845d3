"""The charts of one health check: the series it judges, with its limits as they are now."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from launcher.format import number
from launcher.health.levels import Bound
from launcher.metrics.store import Series, SeriesStore
from tui import glyphs
from tui.charts.figures import finite, trend
from tui.charts.limits import bound_words, strictest
from tui.charts.marks import rose
from tui.drawing.plot import Curve, Limit, Mark, Plot
from tui.drawing.rows import Row
from tui.drawing.scale import step_limit
from tui.words.run import LEVELS

NEAR = 3.0  # a limit this many times the curve's height away still gets onto its chart
_RECENT = 40  # values whose trend the arrow tells


def check_plot(
    key: str, store: SeriesStore, total: Any, bounds: Sequence[Bound], events: Sequence[Mapping[str, Any]]
) -> Plot:
    """One metric of a check. `bounds` are limits on it, `events` the check's own rises and releases."""
    chart = Plot(key, last=step_limit(store.last_step or 0, total if isinstance(total, int) else None))
    series = store.get(key)
    if series is None or series.last is None:
        chart.note = "not logged"
        return chart
    last = series.last
    value: Row = [(number(last), "title" if math.isfinite(last) else "critical")]
    chart.headline = [[*value, (f" {trend(finite(series.values[-_RECENT:])) or ' '}", "dim")]]
    chart.curves = [Curve(series)]
    chart.limits = _limits(series, bounds)
    chart.marks = [Mark(step, glyphs.SEAM, "text") for step in store.seams] + _marks(events)
    return chart


def _limits(series: Series, bounds: Sequence[Bound]) -> list[Limit]:
    """The limits as lines, the worst first; the chart reaches for those that are near its curve."""
    whole = series.span(series.steps[0], series.steps[-1])
    if whole is None:
        return []
    height = max(whole.high - whole.low, 0.1 * max(abs(whole.high), abs(whole.low)))

    def near(value: float) -> bool:
        return whole.low - NEAR * height <= value <= whole.high + NEAR * height

    return [
        Limit(bound.value, LEVELS[str(bound.level)][2], bound_words(bound), near(bound.value), True)
        for bound in reversed(strictest(bounds))
    ]


def _marks(events: Sequence[Mapping[str, Any]]) -> list[Mark]:
    """Where the check rose, and where it was clear again."""
    found = []
    for event in events:
        level = str(event.get("to"))
        if rose(event) or (level == "OK" and isinstance(event.get("step"), int)):
            sign, _, role = LEVELS[level]
            found.append(Mark(event["step"], sign, role))
    return found
