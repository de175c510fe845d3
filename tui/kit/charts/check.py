"""The charts of one health check: the series it is about, with its limits as they are now."""

import math
from collections.abc import Sequence

from launcher.core.format import number
from launcher.health.verdict import bound_words
from launcher.metrics.store import Series, SeriesStore
from launcher.record.check import Bound
from launcher.record.events import LevelChange
from launcher.record.levels import Level
from tui.kit.charts.figures import finite, trend
from tui.kit.drawing import glyphs
from tui.kit.drawing.plot import Curve, Limit, Mark, Plot
from tui.kit.drawing.rows import Row
from tui.kit.drawing.scale import step_limit
from tui.kit.run_words import level_sign, strictest

NEAR = 1.0  # a limit so many heights of the curve away still gets onto its chart; one further off is named at its edge
_RECENT = 40  # values whose trend the arrow shows


def check_plot(
    key: str, store: SeriesStore, total: int | None, bounds: Sequence[Bound], changes: Sequence[LevelChange]
) -> Plot:
    """One metric of a check. `bounds` are limits on it, `changes` the check's own rises and releases."""
    chart = Plot(key, last=step_limit(store.last_step or 0, total))
    series = store.get(key)
    if series is None or series.last is None:
        chart.note = "not logged"
        return chart
    last = series.last
    value: Row = [(number(last), "title" if math.isfinite(last) else "critical")]
    chart.headline = [[*value, (f" {trend(finite(series.values[-_RECENT:])) or ' '}", "dim")]]
    chart.curves = [Curve(series)]
    chart.limits = _limits(series, bounds)
    chart.marks = [Mark(step, glyphs.SEAM, "text") for step in store.seams] + _marks(changes)
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
        Limit(bound.value, level_sign(bound.level)[1], bound_words(bound), near(bound.value), True)
        for bound in reversed(strictest(bounds))
    ]


def _marks(changes: Sequence[LevelChange]) -> list[Mark]:
    """Where the check rose, and where it was clear again."""
    return [Mark(each.step, *level_sign(each.after)) for each in changes if each.rose or each.after == Level.OK]
