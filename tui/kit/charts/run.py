"""The plots of one run: its figures, its metrics, with what health says about them, through a lens."""

from collections.abc import Mapping, Sequence

from launcher.record.check import Bound
from launcher.record.events import LevelChange
from launcher.runs.watch.reader import RunReader
from tui.kit.charts import marks as chart_marks
from tui.kit.charts.check import check_plot
from tui.kit.charts.figures import Figure, plot
from tui.kit.charts.lens import Lens
from tui.kit.charts.view import STEP
from tui.kit.drawing.plot import Curve, Plot


class RunCharts:
    """Makes plots from what a reader has read; cheap to ask again."""

    def __init__(self, reader: RunReader, lens: Lens) -> None:
        self.reader, self.lens = reader, lens
        self._rises: list[LevelChange] = []
        self._seen = -1  # events that the rises were found in

    def figure(self, figure: Figure, figures: Sequence[Figure]) -> Plot:
        """One of the figures on the screen."""
        reader = self.reader
        drawn = plot(figure, reader.series, reader.state, self._risen(), figures=figures, bounds=self._bounds())
        return self._look(drawn, *figure.keys)

    def metric(self, key: str, *, large: bool) -> Plot:
        """Any metric. A `large` chart reaches for limits near its curve, a small one only shows them."""
        reader = self.reader
        rules, bounds = {check.rule for check in reader.state.checks if key in check.keys}, self._bounds().get(key, ())
        drawn = check_plot(key, reader.series, reader.state.total, bounds if large else (), ())
        if not large:
            drawn.limits = chart_marks.limit_lines(bounds)
        drawn.flag = chart_marks.flag(rules.__contains__, reader.state)
        drawn.marks = chart_marks.marks(rules.__contains__, reader.series, self._risen())
        return self._look(drawn, key)

    def _look(self, drawn: Plot, *keys: str) -> Plot:
        """The plot through the lens; of a fork the curve of its parent lies behind its own."""
        shown = self.lens.look(drawn, self.reader.series, self.reader.state.total)
        own, parent = self.reader.series.first_of(*keys), self.reader.parent
        if own and parent is not None and self.lens.view.across == STEP and (series := parent.get(own[0])) is not None:
            shown.curves.insert(0, Curve(series, role="raw"))
        return shown

    def _bounds(self) -> Mapping[str, Sequence[Bound]]:
        """By metric, the limits that do not move with the run. One of 0 is left out: on a chart that is the axis."""
        found: dict[str, list[Bound]] = {}
        for check in self.reader.state.checks:
            for bound in check.bounds:
                if bound.fixed and bound.value and 0 <= bound.series < len(check.keys):
                    found.setdefault(check.keys[bound.series], []).append(bound)
        return found

    def _risen(self) -> list[LevelChange]:
        if self._seen != self.reader.event_count:
            self._seen = self.reader.event_count
            self._rises = chart_marks.rises(self.reader.events)
        return self._rises
