"""The plots of one run through a lens: its metrics, with their limits and flags."""

import math
from collections.abc import Mapping, Sequence

from launcher.core.format import number
from launcher.metrics.glossary import describe
from launcher.metrics.names import Chart
from launcher.metrics.store import Series, SeriesStore
from launcher.record.check import Bound
from launcher.record.events import LevelChange
from launcher.record.levels import Level
from launcher.runs.watch.check_words import line_value, line_words
from launcher.runs.watch.history import kept_rises
from launcher.runs.watch.reader import RunReader
from tui.kit.charts.axes import plan
from tui.kit.charts.figures import finite, flag, limit_lines, marks, milestones, plot, seams, trend
from tui.kit.charts.lens import Lens
from tui.kit.charts.view import STEP
from tui.kit.drawing import glyphs
from tui.kit.drawing.plot import DASHES, Curve, Limit, Mark, Plot
from tui.kit.drawing.rows import Row
from tui.kit.drawing.scale import step_limit
from tui.kit.run_words import level_sign, strictest

NEAR = 1.0  # a limit so many heights of the curve away still gets onto its chart; one further off is named at its edge
_RECENT = 40  # values whose trend the arrow shows


def check_plot(
    key: str, store: SeriesStore, total: int | None, bounds: Sequence[Bound], changes: Sequence[LevelChange]
) -> Plot:
    """The plot of one metric of a check, with its limits `bounds` and the `changes` where the check rose or cleared."""
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
    chart.unit = describe(key).unit
    shown = [each for each in changes if each.rose or each.after == Level.OK]  # where the check rose or cleared
    chart.marks = seams(store.seams) + [Mark(each.step, *level_sign(each.after)) for each in shown]
    return chart


def _limits(series: Series, bounds: Sequence[Bound]) -> list[Limit]:
    """The limits as lines, the worst first; the range of the chart includes those near its curve."""
    whole = series.span(series.steps[0], series.steps[-1])
    if whole is None:
        return []
    height = max(whole.high - whole.low, 0.1 * max(abs(whole.high), abs(whole.low)))

    def near(value: float) -> bool:
        return whole.low - NEAR * height <= value <= whole.high + NEAR * height

    return [
        Limit(line_value(bound), level_sign(bound.level)[1], line_words(bound), near(line_value(bound)), True)
        for bound in reversed(strictest(bounds))
    ]


class RunCharts:
    """Makes plots from what a reader has read; calling it again is cheap."""

    def __init__(self, reader: RunReader, lens: Lens) -> None:
        self.reader, self.lens = reader, lens
        self._rises: list[LevelChange] = []
        self._seen = -1  # events that the rises were found in

    def figure(self, figure: Chart, figures: Sequence[Chart]) -> Plot:
        """One of the figures on the screen."""
        reader = self.reader
        bounds, kept = self._bounds(), reader.kept
        drawn = plot(figure, reader.series, reader.state, self._risen(), figures=figures, bounds=bounds, kept=kept)
        return self._look(drawn, *figure.keys)

    def metric(self, key: str, *, large: bool) -> Plot:
        """The plot of any metric. The range of a `large` chart includes limits near its curve."""
        reader = self.reader
        rules, bounds = {check.rule for check in reader.state.checks if key in check.keys}, self._bounds().get(key, ())
        drawn = check_plot(key, reader.series, self._plan, bounds if large else (), ())
        if not large:
            drawn.limits = limit_lines(bounds)
        drawn.flag = flag(rules.__contains__, reader.state)
        drawn.marks = marks(rules.__contains__, reader.series, self._risen())
        if large:
            drawn.marks = [*milestones(reader.series, reader.kept), *drawn.marks]
        return self._look(drawn, key)

    def _look(self, drawn: Plot, *keys: str) -> Plot:
        """The plot through the lens; behind the curve of a fork is that of its parent."""
        shown = self.lens.look(drawn, self.reader.series, self._plan)
        own, parent = self.reader.series.first_of(*keys), self.reader.parent
        if own and parent is not None and self.lens.view.across == STEP and (series := parent.get(own[0])) is not None:
            shown.behind = Curve(series, role="raw", label="parent", sign=glyphs.FILL_REST, dash=DASHES[2])
        return shown

    @property
    def _plan(self) -> int | None:
        return plan(self.reader.state, self.reader.series.last_step)

    def _bounds(self) -> Mapping[str, Sequence[Bound]]:
        """Limits that a flag crosses now or that are fixed, by metric; a fixed 0 is left out, as it equals the axis."""
        found: dict[str, list[Bound]] = {}
        for check in self.reader.state.checks:
            for bound in check.bounds:
                drawn = (bound.fixed and bound.value) or (check.on and bound.holds)
                if drawn and 0 <= bound.series < len(check.keys):
                    found.setdefault(check.keys[bound.series], []).append(bound)
        return found

    def _risen(self) -> list[LevelChange]:
        if self._seen != self.reader.event_count:
            self._seen = self.reader.event_count
            self._rises = kept_rises(self.reader.events)
        return self._rises
