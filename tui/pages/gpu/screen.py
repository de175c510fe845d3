"""GPUs and host memory of one run: now, who holds it, and over the steps."""

from textual.app import ComposeResult
from textual.containers import Container

from launcher.metrics.store import SeriesStore
from tui.kit.charted import ChartScreen, ViewLine
from tui.kit.charts.memory_charts import look, memory_plot, util_plot
from tui.kit.keys import KEYS
from tui.kit.memory_rows import devices
from tui.kit.page import HIDDEN
from tui.kit.run_page import RunPage
from tui.kit.widgets.chart_widgets import MetricChart
from tui.pages.gpu.devices import DeviceDetail, DeviceList

WIDTHS: list[tuple[int, str]] | None = [(0, "-narrow"), (64, "-normal")]
HEIGHTS: list[tuple[int, str]] | None = [(0, "-tiny"), (9, "-low"), (18, "-short"), (24, "-home"), (36, "-tall")]


class GpuScreen(RunPage, ChartScreen):
    """A line a device; the chosen one in detail with its charts. Without a GPU it is about the host.

    Its charts have the view of the run's others, but usually end at the newest step, not at the planned one.
    """

    HORIZONTAL_BREAKPOINTS = WIDTHS
    VERTICAL_BREAKPOINTS = HEIGHTS
    LEGENDS = ("Memory", "Charts")
    BINDINGS = KEYS["gpu"]

    def body(self) -> ComposeResult:
        yield DeviceList()
        yield DeviceDetail()
        yield ViewLine(classes=HIDDEN)
        with Container(id="memory-charts"):
            yield MetricChart(id="memory-chart")
            yield MetricChart(id="util-chart")

    def on_listing_moved(self) -> None:
        self.show()

    def charted(self) -> tuple[SeriesStore, int | None]:
        state, store = self.reader.state, self.reader.series
        return store, None if state.live else store.last_step

    def show_charts(self) -> None:
        reader, device = self.reader, self.query_one(DeviceList).chosen
        machine, store, state = reader.machine, reader.series, reader.state
        plot, end = memory_plot(machine, store, state, device), self.charted()[1]
        self.query_one("#memory-chart", MetricChart).show(look(plot, self.lens, store, end))
        util = self.query_one("#util-chart", MetricChart)
        used = util_plot(machine, store, state, device) if device is not None else None
        util.set_class(used is None, HIDDEN)
        self.query_one("#memory-charts").set_class(used is None, "-single")
        if used is not None:
            util.show(look(used, self.lens, store, end))

    def show_body(self) -> None:
        latest = self.reader.machine.latest
        listed = self.query_one(DeviceList)
        listed.show(devices(latest))
        missing = latest.missing if latest and not self.reader.head.on_cpu else None
        self.query_one(DeviceDetail).show(listed.chosen, missing, latest.away if latest else None)
        self.show_charts()
        self.show_view()
