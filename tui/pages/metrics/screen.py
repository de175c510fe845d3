"""Every metric of a run: find one by typing, see its course, pin it to the dashboard."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Input

from launcher.metrics.names import pinned
from launcher.runs.watch.reader import RunReader
from tui.kit.charts.lens import Lens
from tui.kit.drawing.rows import Row
from tui.kit.drawing.scale import step_limit
from tui.kit.keys import KEYS
from tui.kit.matching import ranked
from tui.kit.metric_rows import column_heads, meaning_rows, metric_row, title
from tui.kit.page import Page
from tui.kit.widgets.fields import open_field
from tui.kit.widgets.header_line import HeaderLine
from tui.kit.widgets.key_bar import KeyBar
from tui.kit.widgets.line_table import MetricTable
from tui.kit.widgets.lines import Lines
from tui.pages.metrics.metric import MetricScreen, pin

POLL = 1.0  # seconds; the dashboard below reads the files


class MetricsScreen(Page[None]):
    """Follows the run. What is typed is looked for in names, units and meanings."""

    BINDINGS: ClassVar[list[BindingType]] = [*KEYS["metrics"]]

    def __init__(self, reader: RunReader, lens: Lens) -> None:
        """`lens` is that of the run's charts, for the page of a metric."""
        super().__init__()
        self.reader, self.lens = reader, lens
        self._pins = pinned()

    def compose(self) -> ComposeResult:
        yield HeaderLine()
        yield Input(placeholder="/ to filter by name, unit or meaning", compact=True)
        yield Lines(id="heads")
        yield MetricTable(self._line, " no matching metric; press esc to clear the filter")
        yield Lines(id="meaning")
        yield KeyBar()

    def on_mount(self) -> None:
        self.query_one(MetricTable).focus()
        self._show()
        self.set_interval(POLL, self._show)

    def on_resize(self) -> None:
        self._show()

    def on_screen_resume(self) -> None:
        self._pins = pinned()
        self._show()

    def on_input_changed(self) -> None:
        self._show()
        self.query_one(MetricTable).action_move(-len(self.reader.series.keys()))  # to the best one

    def on_input_submitted(self) -> None:
        self.query_one(MetricTable).focus()

    def on_line_table_moved(self) -> None:
        self._show_meaning()

    def on_line_table_chosen(self, event: MetricTable.Chosen) -> None:
        keys = self.query_one(MetricTable).keys
        self.app.push_screen(MetricScreen(self.reader, self.lens, event.key, keys))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """In the filter a slash is a letter: names of metrics are full of them."""
        return action != "filter" or not isinstance(self.focused, Input)

    def action_filter(self) -> None:
        open_field(self.query_one(Input))

    def action_back(self) -> None:
        """Escape: all metrics again; when they are all there, the dashboard."""
        field = self.query_one(Input)
        if not field.value and self.focused is not field:
            self.dismiss()
        field.value = ""
        self.query_one(MetricTable).focus()

    def action_move(self, distance: int) -> None:
        self.query_one(MetricTable).action_move(distance)

    def action_pin(self) -> None:
        key = self.query_one(MetricTable).cursor
        if key is not None:
            pin(self.app, key)
            self._pins = pinned()
            self._show()

    def _show(self) -> None:
        reader, known = self.reader, self.reader.series.keys()
        keys = ranked(known, self.query_one(Input).value)
        self.query_one(HeaderLine).show(reader.name, reader.id, reader.state, None)
        self.query_one("#heads", Lines).show([column_heads(len(keys), len(known), self.size.width)])
        self.query_one(MetricTable).show(keys)
        self._show_meaning()

    def _line(self, key: str, columns: int) -> Row:
        store = self.reader.series
        series, last = store.get(key), step_limit(store.last_step or 0, None)
        assert series is not None
        return metric_row(key, series, last, pinned=key in self._pins, columns=columns)

    def _show_meaning(self) -> None:
        key, columns = self.query_one(MetricTable).cursor, self.size.width
        rows: list[Row] = [[(f" {title(key)}", "title")], *meaning_rows(key, columns)] if key else []
        self.query_one("#meaning", Lines).show([*rows, *([] for _ in range(3 - len(rows)))])
