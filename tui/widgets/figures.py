"""The charts of the figures that every run has: four at home, six on a large screen."""

from textual.app import ComposeResult
from textual.containers import Container

from tui.charts.figures import ALL_FIGURES, FIGURES
from tui.charts.run import RunCharts
from tui.widgets.metric_chart import MetricChart

WIDE, TALL = 120, 36  # columns and rows from which there are six


class Figures(Container):
    """`#chart-0` to `#chart-5`, in the order of `ALL_FIGURES`."""

    def compose(self) -> ComposeResult:
        for index, _ in enumerate(ALL_FIGURES):
            yield MetricChart(id=f"chart-{index}")

    def show(self, charts: RunCharts) -> None:
        columns, rows = self.app.size
        figures = ALL_FIGURES if columns >= WIDE and rows >= TALL else FIGURES
        for chart, figure in zip(self.query(MetricChart), figures, strict=False):
            chart.show(charts.figure(figure, figures))
