"""GPU and host memory of one run: now, by user, and over the steps."""

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Container

from launcher.metrics.store import SeriesStore
from launcher.record.machine import MachineSample
from tui.kit.charted import ChartScreen, ViewLine
from tui.kit.charts.memory_charts import look, memory_plot, util_plot
from tui.kit.drawing.plot import Plot
from tui.kit.drawing.rows import Row
from tui.kit.keys import KEYS
from tui.kit.memory_rows import devices
from tui.kit.page import HIDDEN
from tui.kit.run_page import EntryScreen, RunPage
from tui.kit.widgets.chart_widgets import MetricChart
from tui.kit.widgets.inspector import Inspected, Inspection
from tui.pages.machine.devices import DeviceDetail, DeviceList, chosen_rows

WIDTHS: list[tuple[int, str]] | None = [(0, "-narrow"), (64, "-normal")]
HEIGHTS: list[tuple[int, str]] | None = [(0, "-tiny"), (9, "-low"), (18, "-short"), (24, "-home"), (36, "-tall")]
_ALL = 1_000  # rows: the inspector scrolls


class MachineScreen(Inspected[None], RunPage, ChartScreen):
    """One line per device; the chosen one in detail with its charts. Without a GPU it shows the host.

    Its charts have the view of the run's others, but usually end at the newest step, not at the planned one.
    """

    PAGE_NAME, ENTRY_NAME = "Machine", "Device"
    HORIZONTAL_BREAKPOINTS = WIDTHS
    VERTICAL_BREAKPOINTS = HEIGHTS
    LEGENDS = ("Memory", "Charts")
    BINDINGS = KEYS["machine"]

    def body(self) -> ComposeResult:
        yield ViewLine(classes=HIDDEN)
        yield DeviceList()
        yield DeviceDetail()
        yield Container(MetricChart(id="memory-chart"), MetricChart(id="util-chart"), id="memory-charts")

    @property
    def inspects(self) -> bool:
        """False: the charts have the whole width."""
        return False

    @property
    def listed(self) -> DeviceList:
        return self.query_one(DeviceList)

    def on_listing_moved(self) -> None:
        self.show()

    def on_listing_chosen(self) -> None:
        self.app.push_screen(DeviceScreen(self))

    def charted(self) -> tuple[SeriesStore, int | None]:
        state, store = self.reader.state, self.reader.series
        return store, None if state.live else store.last_step

    def plots(self) -> Sequence[Plot]:
        """Memory of the chosen device over the steps, and its utilization if measured."""
        reader, device = self.reader, self.listed.chosen
        machine, store, state = reader.machine, reader.series, reader.state
        found = [memory_plot(machine, store, state, device)]
        if device is not None and (used := util_plot(machine, store, state, device)) is not None:
            found.append(used)
        return [look(plot, self.lens, store, self.charted()[1]) for plot in found]

    def inspect(self, key: str | None, columns: int) -> Inspection:
        return Inspection(charts=self.plots(), rows=self._detail(columns, _ALL))

    def _detail(self, columns: int, rows: int) -> list[Row]:
        reader, chosen = self.reader, self.listed.chosen
        ended, on_cpu = reader.state.has_ended, reader.head.on_cpu
        return chosen_rows(chosen, self._sample, columns, rows, on_cpu=on_cpu, ended=ended)

    @property
    def _sample(self) -> MachineSample | None:
        machine = self.reader.machine
        return machine.final if self.reader.state.has_ended else machine.latest

    def show_charts(self) -> None:
        box = self.query_one("#memory-charts")
        plots = self.plots()
        box.set_class(len(plots) == 1, "-single")
        for chart, plot in zip(box.query(MetricChart), plots, strict=False):
            chart.show(plot)
        self.query_one("#util-chart").set_class(len(plots) == 1, HIDDEN)

    def show_body(self) -> None:
        self.listed.show(devices(self._sample))
        self.query_one(DeviceDetail).show(self._detail)
        self.show_charts()
        self.show_view()


class DeviceScreen(EntryScreen, ChartScreen, inherit_bindings=False):
    """The selected device of the page below; brackets show the other devices."""

    LEGENDS = ("Memory", "Charts")
    BINDINGS = KEYS["device"]
    source: MachineScreen

    def __init__(self, source: MachineScreen) -> None:
        super().__init__(source)
        self.lens = source.lens

    def body(self) -> ComposeResult:
        yield ViewLine(classes=HIDDEN)
        yield from super().body()

    def charted(self) -> tuple[SeriesStore, int | None]:
        return self.source.charted()

    def show_charts(self) -> None:
        super().show()

    def show(self) -> None:
        super().show()
        self.show_view()
