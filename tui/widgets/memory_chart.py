"""Memory beside the steps: of the fullest GPU, or of the host."""

from launcher.run.reading.reader import RunReader
from tui.charts.lens import Lens
from tui.charts.memory import look, memory_plot
from tui.content.memory import fullest
from tui.drawing.chart import draw
from tui.drawing.plot import Plot
from tui.drawing.rows import Row
from tui.widgets.painted import Painted


class MemoryChart(Painted):
    """Follows the view of the charts beside it; no `MetricChart`, for its values belong to no step."""

    plot = Plot("")

    def show(self, reader: RunReader, lens: Lens) -> None:
        """The memory of a run, through the lens of its charts."""
        machine, store, state = reader.machine, reader.series, reader.state
        plot = memory_plot(machine, store, state, fullest(machine.latest))
        self.plot = look(plot, lens, store, state.total)
        self.redraw()

    def draw(self, columns: int, rows: int) -> list[Row]:
        return draw(self.plot, columns, rows)
