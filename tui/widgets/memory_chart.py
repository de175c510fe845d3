"""Memory beside the steps: of the fullest GPU, or of the host."""

from launcher.run.reader import RunReader
from tui.charts.memory import memory_plot
from tui.charts.memory_axis import SampleAxis
from tui.charts.view import Stretch
from tui.content.memory import fullest
from tui.drawing.chart import draw
from tui.drawing.plot import Plot
from tui.drawing.rows import Row
from tui.widgets.painted import Painted


class MemoryChart(Painted):
    """On the same steps as the charts beside it; no `MetricChart`, for its values belong to no step."""

    plot = Plot("")

    def show(self, reader: RunReader, steps: Stretch, cursor: int | None) -> None:
        """The memory of a run during these steps; `cursor` is the step whose values are read."""
        device = fullest(reader.memory.latest)
        self.plot = memory_plot(reader.memory, reader.series, reader.state, device, steps)
        if cursor is not None and isinstance(self.plot.axis, SampleAxis):
            self.plot.cursor = self.plot.axis.sample_of(cursor)
        self.redraw()

    def draw(self, columns: int, rows: int) -> list[Row]:
        return draw(self.plot, columns, rows)
