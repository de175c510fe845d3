"""Chart widgets: single charts, a run's standard charts, and the user's pinned ones."""

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Container

from launcher.metrics import names
from launcher.metrics.names import MOST_PINS
from launcher.runs.watch.proof import proven
from launcher.runs.watch.reader import RunReader
from tui.kit.charts.axes import plan
from tui.kit.charts.lens import Lens
from tui.kit.charts.memory_charts import look, memory_plot
from tui.kit.charts.run_charts import RunCharts
from tui.kit.drawing.line_chart import draw
from tui.kit.drawing.plot import Plot
from tui.kit.drawing.rows import Row
from tui.kit.memory_rows import fullest
from tui.kit.metric_rows import title
from tui.kit.page import HIDDEN
from tui.kit.widgets.painted import Painted

WIDE, TALL = 120, 36  # columns and rows from which a screen has all six figures
_PINNED = 39  # columns of a pinned chart at the home size


class _Chart(Painted):
    """Draws a plot of any size and any values, including nan and infinity."""

    plot = Plot("")

    def draw(self, columns: int, rows: int) -> list[Row]:
        return draw(self.plot, columns, rows, tinted=self.tinted)


class MetricChart(_Chart):
    """One metric over the steps of a run."""

    def show(self, plot: Plot) -> None:
        """Replaces the plot; paints only changed cells."""
        self.plot = plot
        self.redraw()


class MemoryChart(_Chart):
    """Memory of the fullest GPU or the host over the steps, in the view of the charts next to it.

    It is not a `MetricChart`, because its values do not belong to steps.
    """

    def show(self, reader: RunReader, lens: Lens) -> None:
        """Shows a run's memory, through the lens of its charts."""
        machine, store, state = reader.machine, reader.series, reader.state
        plot = memory_plot(machine, store, state, fullest(machine.latest))
        self.plot = look(plot, lens, store, plan(state, store.last_step))
        self.redraw()


class Figures(Container):
    """`#chart-0` to `#chart-5`, in the order of `names.charts`, with one as evidence of the worst flag."""

    def compose(self) -> ComposeResult:
        for index, _ in enumerate(names.charts()):
            yield MetricChart(id=f"chart-{index}")

    def show(self, charts: RunCharts) -> None:
        columns, rows = self.app.size
        store, checks = charts.reader.series, charts.reader.state.checks
        count = None if columns >= WIDE and rows >= TALL else names.FEW
        figures = proven(names.charts(store)[:count], store, checks)
        for chart, figure in zip(self.query(MetricChart), figures, strict=False):
            chart.show(charts.figure(figure, figures))


class PinnedCharts(Container):
    """Up to four charts in as many columns as fit: one row on a large screen, two at the home size."""

    def compose(self) -> ComposeResult:
        for _ in range(MOST_PINS):
            yield MetricChart(classes=HIDDEN)

    def show(self, keys: Sequence[str], charts: RunCharts) -> None:
        columns = max(min(self.app.size.width // _PINNED, len(keys)), 1)
        self.set_class(not keys, HIDDEN)
        self.set_class(len(keys) > columns, "-two-rows")
        self.styles.grid_size_columns = columns
        for index, chart in enumerate(self.query(MetricChart)):
            chart.set_class(index >= len(keys), HIDDEN)
            if index < len(keys):
                drawn = charts.metric(keys[index], large=False)
                drawn.title = title(drawn.title)
                chart.show(drawn)
