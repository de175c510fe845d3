"""The charts that the user added to the dashboard."""

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Container

from launcher.metrics.pins import MOST
from tui.charts.run import RunCharts
from tui.content.metrics import shorten, title
from tui.widgets.metric_chart import MetricChart
from tui.widgets.painted import HIDDEN

_CHART = 39  # columns of one chart at the home size
_FIGURES = 14  # columns of its title that the newest value needs


class PinnedCharts(Container):
    """Up to four charts in as many columns as fit: one row on a large screen, two at the home size."""

    def compose(self) -> ComposeResult:
        for _ in range(MOST):
            yield MetricChart()

    def show(self, keys: Sequence[str], charts: RunCharts) -> None:
        columns = max(min(self.app.size.width // _CHART, len(keys)), 1)
        self.set_class(not keys, HIDDEN)
        self.set_class(len(keys) > columns, "-two-rows")
        self.styles.grid_size_columns = columns
        room = self.app.size.width // columns - _FIGURES
        for index, chart in enumerate(self.query(MetricChart)):
            chart.set_class(index >= len(keys), HIDDEN)
            if index < len(keys):
                drawn = charts.metric(keys[index], large=False)
                drawn.title = shorten(title(drawn.title), room)
                chart.show(drawn)
