"""One metric in full screen."""

from collections.abc import Sequence
from typing import Any

from textual.app import App, ComposeResult

from launcher.metrics.names import pinned, toggle
from launcher.metrics.store import SeriesStore
from tui.kit.actions.background import reported
from tui.kit.charted import ChartScreen, ViewLine
from tui.kit.charts.axes import plan
from tui.kit.charts.run_charts import RunCharts
from tui.kit.keys import KEYS
from tui.kit.metric_rows import fact_rows, title
from tui.kit.navigation import RunView
from tui.kit.page import HIDDEN
from tui.kit.run_page import RunPage
from tui.kit.widgets.chart_widgets import MetricChart
from tui.kit.widgets.lines import Lines


class MetricScreen(RunPage, ChartScreen):
    """Chart, figures and meaning; up and down show the other metrics of the list."""

    PAGE_NAME = "Metric"
    LEGENDS = ("Charts",)
    BINDINGS = KEYS["metric"]

    def __init__(self, run: RunView, key: str, keys: Sequence[str], *, follow: bool = False) -> None:
        """`follow`: this page reads the run's files, as no page below does."""
        super().__init__(run)
        self._follow = follow
        self.key, self.keys = key, keys
        self.charts = RunCharts(self.reader, self.lens)

    def body(self) -> ComposeResult:
        yield ViewLine(classes=HIDDEN)
        yield MetricChart()
        yield Lines(id="facts")

    @property
    def topic(self) -> str:
        return self.key

    def poll(self) -> None:
        if self._follow:
            self.reader.poll()
        self.show()

    def action_neighbour(self, distance: int) -> None:
        if self.key in self.keys:
            self.key = self.keys[(self.keys.index(self.key) + distance) % len(self.keys)]
            self.show()

    def action_pin(self) -> None:
        pin(self.app, self.key)
        self.show()

    def charted(self) -> tuple[SeriesStore, Any]:
        return self.reader.series, plan(self.reader.state, self.reader.series.last_step)

    def show_charts(self) -> None:
        drawn = self.charts.metric(self.key, large=True)
        drawn.title = title(self.key)
        self.query_one(MetricChart).show(drawn)

    def show_body(self) -> None:
        self.show_charts()
        self.show_view()
        series = self.reader.series.get(self.key)
        if series:  # a resumed run may have forgotten its only value
            facts = fact_rows(self.key, series, pinned=self.key in pinned(), columns=self.size.width)
            self.query_one("#facts", Lines).show(facts)


def pin(app: App[Any], key: str) -> None:
    """Pins or unpins a metric on the dashboard, and shows a message."""
    shown = "is pinned to the dashboard; on a small screen, press tab there to show it"
    with reported(app, "Cannot save the layout", "warning"):
        app.notify(f"{title(key)} {shown if toggle(key) else 'is unpinned'}", markup=False)
