"""A chart of one figure over the steps of a run."""

from tui.drawing.chart import draw
from tui.drawing.plot import Plot
from tui.drawing.rows import Row
from tui.widgets.painted import Painted


class MetricChart(Painted):
    """Shows a `Plot`. Survives any size and any values, nan and infinity included."""

    plot = Plot("")

    def show(self, plot: Plot) -> None:
        """Replaces what is shown; only the cells that changed are painted."""
        self.plot = plot
        self.redraw()

    def draw(self, columns: int, rows: int) -> list[Row]:
        return draw(self.plot, columns, rows)
