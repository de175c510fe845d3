"""All metrics of a run: find one by typing, see its curve, pin it to the dashboard."""

from textual.app import ComposeResult
from textual.widgets import Input

from launcher.metrics.names import pinned
from launcher.runs.watch.proof import flagged
from tui.kit.charts.axes import plan
from tui.kit.charts.run_charts import RunCharts
from tui.kit.drawing.rows import Row
from tui.kit.drawing.scale import step_limit
from tui.kit.keys import KEYS
from tui.kit.list_page import ListPage
from tui.kit.matching import ranked
from tui.kit.metric_rows import column_heads, fact_rows, meaning_rows, metric_row, title, used_by
from tui.kit.navigation import RunView
from tui.kit.run_page import RunPage
from tui.kit.widgets.inspector import Inspection
from tui.kit.widgets.lines import Lines
from tui.kit.widgets.lists import MetricTable
from tui.pages.metrics.metric import MetricScreen, pin


class MetricsScreen(ListPage[None], RunPage):
    """Follows the run. The typed text is searched in names, units and meanings."""

    PAGE_NAME = "Metrics"
    AUTO_FOCUS = "MetricTable"
    BINDINGS = KEYS["metrics"]
    TABLE = MetricTable
    EMPTY = "All metrics of the run appear here. None matches the filter (esc clears it), or no step has ended."
    DETAIL, DETAIL_ROWS = "meaning", 3

    def __init__(self, run: RunView) -> None:
        super().__init__(run)
        self._pins = pinned()
        self._charts = RunCharts(self.reader, self.lens)

    @property
    def topic(self) -> str | None:
        return self.table.cursor

    def body(self) -> ComposeResult:
        yield Input(placeholder="/ to filter by name, unit or meaning", compact=True)
        yield from self.make_list(Lines(id="heads"))

    def on_mount(self) -> None:
        shown = flagged(self.reader.series, self.reader.state.checks)
        self.table.cursor = shown[0][1] if shown else None

    def on_screen_resume(self) -> None:
        self._pins = pinned()
        self.show()

    def on_input_changed(self) -> None:
        self.show()
        self.table.action_move(-len(self.reader.series.keys()))  # to the best match

    def on_input_submitted(self) -> None:
        self.table.focus()

    def on_listing_chosen(self, event: MetricTable.Chosen) -> None:
        self.app.push_screen(MetricScreen(self.run, event.key, self.table.keys))

    def action_filter(self) -> None:
        self.open_field(self.query_one(Input))

    def action_back(self) -> None:
        """Shows all metrics again; otherwise, returns to the dashboard."""
        field = self.query_one(Input)
        if not field.value and self.focused is not field:
            self.dismiss()
        field.value = ""
        self.table.focus()

    def action_move(self, distance: int) -> None:
        self.table.action_move(distance)

    def action_pin(self) -> None:
        if self.table.cursor is not None:
            pin(self.app, self.table.cursor)
            self._pins = pinned()
            self.show()

    def show_body(self) -> None:
        known = self.reader.series.keys()
        keys = ranked(known, self.query_one(Input).value)
        self.query_one("#heads", Lines).show([column_heads(len(keys), len(known), self.list_columns - 1)])
        self.show_list(keys)

    def row(self, key: str, columns: int) -> Row:
        store = self.reader.series
        series, last = store.get(key), step_limit(store.last_step or 0, plan(self.reader.state, store.last_step))
        assert series is not None
        return metric_row(key, series, last, pinned=key in self._pins, columns=columns)

    def inspect(self, key: str | None, columns: int) -> Inspection:
        series = self.reader.series.get(key) if key else None
        if key is None or not series:
            return Inspection()
        chart = self._charts.metric(key, large=True)
        chart.title = title(key)
        rows = fact_rows(key, series, pinned=key in self._pins, columns=columns)
        return Inspection(charts=[chart], rows=[*rows, *used_by(key, self.reader.state.checks, columns)])

    def detail(self, key: str | None, columns: int) -> list[Row]:
        return [[(f" {title(key)}", "title")], *meaning_rows(key, columns)] if key else []
