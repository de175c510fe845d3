"""One metric, as large as the screen."""

from collections.abc import Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Footer

from launcher.metrics.pins import pinned
from launcher.metrics.store import SeriesStore
from launcher.run.reading.reader import RunReader
from tui.actions.pinning import pin
from tui.charts.lens import Lens
from tui.charts.run import RunCharts
from tui.content.metrics import fact_rows, title
from tui.screens.charted import ChartScreen, chart_keys
from tui.widgets.header_line import HeaderLine
from tui.widgets.lines import Lines
from tui.widgets.metric_chart import MetricChart
from tui.widgets.painted import HIDDEN
from tui.widgets.view_line import ViewLine

POLL = 1.0  # seconds; the dashboard below reads the files


class MetricScreen(ChartScreen):
    """Chart, figures and meaning; up and down show the other metrics of the list."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "escape,backspace,q,m",
            "back",
            "back",
            id="metric.back",
            key_display="esc",
            tooltip="Back to where you came from",
        ),
        Binding(
            "up,k", "neighbour(-1)", "other metrics", id="metric.previous", key_display="↑↓", tooltip="Another metric"
        ),
        Binding("down,j", "neighbour(1)", id="metric.next", show=False, key_display="↑↓", tooltip="Another metric"),
        Binding("p", "pin", "pin", id="metric.pin", tooltip="Put the metric on the dashboard, or take it off"),
        *chart_keys(shown=True),
    ]

    def __init__(self, reader: RunReader, lens: Lens, key: str, keys: Sequence[str]) -> None:
        super().__init__(lens)
        self.reader, self.key, self.keys = reader, key, keys
        self.charts = RunCharts(reader, self.lens)
        self.charts.judge()

    def compose(self) -> ComposeResult:
        yield HeaderLine()
        yield ViewLine(classes=HIDDEN)
        yield MetricChart()
        yield Lines(id="facts")
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        self._show()
        self.set_interval(POLL, self._show)

    def on_resize(self) -> None:
        self._show()

    def action_neighbour(self, distance: int) -> None:
        if self.key in self.keys:
            self.key = self.keys[(self.keys.index(self.key) + distance) % len(self.keys)]
            self._show()

    def action_pin(self) -> None:
        pin(self.app, self.key)
        self._show()

    def action_back(self) -> None:
        if not self.drop_cursor():
            self.dismiss()

    def charted(self) -> tuple[SeriesStore, Any]:
        return self.reader.series, self.reader.state.get("total")

    def show_charts(self) -> None:
        drawn = self.charts.metric(self.key, large=True)
        drawn.title = title(self.key)
        self.query_one(MetricChart).show(drawn)

    def _show(self) -> None:
        reader = self.reader
        self.query_one(HeaderLine).show(reader.name, reader.id, reader.state, None)
        self.show_charts()
        self.show_view()
        series = reader.series.get(self.key)
        if series:  # a resumed run may have forgotten its only value
            facts = fact_rows(self.key, series, pinned=self.key in pinned(), columns=self.size.width)
            self.query_one("#facts", Lines).show(facts)
