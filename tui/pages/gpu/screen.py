"""GPUs and host memory of one run: now, who holds it, and over the steps."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container

from launcher.metrics.store import SeriesStore
from launcher.runs.watch.reader import RunReader
from tui.kit.charted import ChartScreen, ViewLine
from tui.kit.charts.lens import Lens
from tui.kit.charts.memory_charts import look, memory_plot, util_plot
from tui.kit.keys import KEYS
from tui.kit.memory_rows import devices
from tui.kit.widgets.chart_widgets import MetricChart
from tui.kit.widgets.header_line import HeaderLine
from tui.kit.widgets.key_bar import KeyBar
from tui.kit.widgets.painted import HIDDEN
from tui.pages.gpu.devices import DeviceDetail, DeviceList

POLL = 1.0  # seconds; the dashboard below reads the files
WIDTHS: list[tuple[int, str]] | None = [(0, "-narrow"), (64, "-normal")]
HEIGHTS: list[tuple[int, str]] | None = [(0, "-tiny"), (9, "-low"), (18, "-short"), (24, "-home"), (36, "-tall")]


class GpuScreen(ChartScreen):
    """A line a device; the chosen one in detail with its charts. Without a GPU it is about the host.

    Its charts have the view of the run's others, but usually end at the newest step, not at the planned one.
    """

    HORIZONTAL_BREAKPOINTS = WIDTHS
    VERTICAL_BREAKPOINTS = HEIGHTS
    LEGENDS = ("Memory", "Charts")
    BINDINGS: ClassVar[list[BindingType]] = [*KEYS["gpu"]]

    def __init__(self, reader: RunReader, lens: Lens, *, on_cpu: bool, read_only: bool) -> None:
        """`on_cpu`: the run wants no GPU, so none is missed."""
        super().__init__(lens)
        self.reader, self.on_cpu, self.read_only = reader, on_cpu, read_only

    def compose(self) -> ComposeResult:
        yield HeaderLine()
        yield DeviceList()
        yield DeviceDetail()
        yield ViewLine(classes=HIDDEN)
        with Container(id="memory-charts"):
            yield MetricChart(id="memory-chart")
            yield MetricChart(id="util-chart")
        yield KeyBar()

    def on_mount(self) -> None:
        self.query_one(HeaderLine).read_only = self.read_only
        self.query_one(DeviceList).focus()
        self._show()
        self.set_interval(POLL, self._show)

    def on_resize(self) -> None:
        self._show()

    def on_device_list_moved(self) -> None:
        self._show()

    def action_back(self) -> None:
        if not self.drop_cursor():
            self.dismiss()

    def charted(self) -> tuple[SeriesStore, int | None]:
        return self.reader.series, None

    def show_charts(self) -> None:
        reader, device = self.reader, self.query_one(DeviceList).chosen
        machine, store, state = reader.machine, reader.series, reader.state
        plot = memory_plot(machine, store, state, device)
        self.query_one("#memory-chart", MetricChart).show(look(plot, self.lens, store, None))
        util = self.query_one("#util-chart", MetricChart)
        used = util_plot(machine, store, state, device) if device is not None else None
        util.set_class(used is None, HIDDEN)
        self.query_one("#memory-charts").set_class(used is None, "-single")
        if used is not None:
            util.show(look(used, self.lens, store, None))

    def _show(self) -> None:
        reader, latest = self.reader, self.reader.machine.latest
        self.query_one(HeaderLine).show(reader.name, reader.id, reader.state, None)
        listed = self.query_one(DeviceList)
        listed.show(devices(latest))
        missing = latest.missing if latest and not self.on_cpu else None
        self.query_one(DeviceDetail).show(listed.chosen, missing, latest.away if latest else None)
        self.show_charts()
        self.show_view()
