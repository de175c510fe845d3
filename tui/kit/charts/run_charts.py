"""The plots of one run through a lens: its metrics with limits and flags."""

import math
from collections.abc import Mapping, Sequence

from launcher.core.format import number
from launcher.metrics.glossary import describe
from launcher.metrics.names import Chart
from launcher.metrics.store import SeriesStore
from launcher.record.check import Bound
from launcher.record.events import LevelChange
from launcher.record.levels import Level
from launcher.runs.watch.history import kept_rises
from launcher.runs.watch.proof import nearest, strictest
from launcher.runs.watch.reader import RunReader
from tui.kit.charts.axes import plan
from tui.kit.charts.figures import finite, flag, limit_lines, marks, milestones, plot, seams, trend
from tui.kit.charts.lens import Lens
from tui.kit.charts.view import STEP
from tui.kit.drawing import glyphs
from tui.kit.drawing.plot import DASHES, Curve, Mark, Plot
from tui.kit.drawing.rows import Row
from tui.kit.drawing.scale import step_limit
from tui.kit.run_words import level_sign

_RENEWED = 10  # steps for which limits that move stay where they are drawn
_RECENT = 40  # values of the trend


def check_plot(
    key: str, store: SeriesStore, total: int | None, bounds: Sequence[Bound], changes: Sequence[LevelChange]
) -> Plot:
    """The plot of one metric of a check, with its limits `bounds`, and `changes` when it rose or cleared."""
    chart = Plot(key, last=step_limit(store.last_step or 0, total))
    series = store.get(key)
    if series is None or series.last is None:
        chart.note = "not logged"
        return chart
    last = series.last
    value: Row = [(number(last), "title" if math.isfinite(last) else "critical")]
    chart.headline = [[*value, (f" {trend(finite(series.values[-_RECENT:])) or ' '}", "dim")]]
    chart.curves = [Curve(series)]
    chart.limits = limit_lines(strictest(bounds)[::-1], series, all_near=True)
    chart.unit = describe(key).unit
    shown = [each for each in changes if each.rose or each.after == Level.OK]  # where the check rose or cleared
    chart.marks = seams(store.seams) + [Mark(each.step, *level_sign(each.after)) for each in shown]
    return chart


class RunCharts:
    """Makes plots from a reader's data; repeated calls are cheap."""

    def __init__(self, reader: RunReader, lens: Lens) -> None:
        self.reader, self.lens = reader, lens
        self._rises: list[LevelChange] = []
        self._seen = -1  # events that the rises were found in
        self._made_of: object = None
        self._found: dict[str, list[Bound]] = {}

    def figure(self, figure: Chart, figures: Sequence[Chart]) -> Plot:
        """The plot of a figure on the screen."""
        reader = self.reader
        bounds, kept = self._bounds(), reader.kept
        drawn = plot(figure, reader.series, reader.state, self._risen(), figures=figures, bounds=bounds, kept=kept)
        return self._look(drawn, *figure.keys)

    def metric(self, key: str, *, large: bool) -> Plot:
        """The plot of any metric; a `large` one has marks at validations and checkpoints."""
        reader = self.reader
        rules, series = {check.rule for check in reader.state.checks if key in check.keys}, reader.series.get(key)
        bounds = nearest(self._bounds().get(key, ()), series) if series else ()
        drawn = check_plot(key, reader.series, self._plan, bounds, ())
        drawn.flag = flag(rules.__contains__, reader.state)
        drawn.marks = marks(rules.__contains__, reader.series, self._risen())
        if large:
            drawn.marks = [*milestones(reader.series, reader.kept), *drawn.marks]
        return self._look(drawn, key)

    def _look(self, drawn: Plot, *keys: str) -> Plot:
        """The plot through the lens; the parent's curve is behind a fork's."""
        shown = self.lens.look(drawn, self.reader.series, self._plan)
        own, parent = self.reader.series.first_of(*keys), self.reader.parent
        if own and parent is not None and self.lens.view.across == STEP and (series := parent.get(own[0])) is not None:
            shown.behind = Curve(series, role="curve-2", label="parent", sign=glyphs.FILL_REST, dash=DASHES[2])
        return shown

    @property
    def _plan(self) -> int | None:
        return plan(self.reader.state, self.reader.series.last_step)

    def _bounds(self) -> Mapping[str, Sequence[Bound]]:
        """Limits by metric, updated when a flag changes and every ten steps; omits 0, which equals the axis."""
        checks, step = self.reader.state.checks, self.reader.series.last_step or 0
        made_of = step // _RENEWED, [(check.rule, check.level) for check in checks]
        if made_of != self._made_of:
            self._made_of, self._found = made_of, {}
            for check in checks:
                for bound in check.bounds:
                    if bound.value and 0 <= bound.series < len(check.keys):
                        self._found.setdefault(check.keys[bound.series], []).append(bound)
        return self._found

    def _risen(self) -> list[LevelChange]:
        if self._seen != self.reader.event_count:
            self._seen = self.reader.event_count
            self._rises = kept_rises(self.reader.events)
        return self._rises
