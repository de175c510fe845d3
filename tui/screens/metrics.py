"""Every metric of a run: find one by typing, see its course, pin it to the dashboard."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Footer, Input

from launcher.metrics.pins import pinned
from launcher.run.reader import RunReader
from launcher.text import clean
from tui.drawing.rows import Row
from tui.drawing.scale import step_limit
from tui.matching import ranked
from tui.metric_rows import column_heads, meaning_rows, metric_row
from tui.pinning import pin
from tui.screens.metric import MetricScreen
from tui.widgets.header_line import HeaderLine
from tui.widgets.items import Item
from tui.widgets.lines import Lines
from tui.widgets.metric_items import MetricItems

POLL = 1.0  # seconds; the dashboard below reads the files


class MetricsScreen(Screen[None]):
    """Follows the run. What is typed is looked for in names, units and meanings."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "filter", key_display="/", tooltip="Look for a name, a unit, a meaning"),
        Binding("p", "pin", "pin", tooltip="Put the metric on the dashboard, or take it off"),
        Binding("escape", "back", show=False),
        Binding("m,backspace,q", "dismiss", "back", key_display="m", tooltip="Back to the dashboard"),
        Binding("up", "move(-1)", show=False),
        Binding("down", "move(1)", show=False),
    ]

    def __init__(self, reader: RunReader) -> None:
        super().__init__()
        self.reader = reader
        self.keys: list[str] = []  # as listed
        self._pins = pinned()
        self._rows: dict[str, Row] = {}
        self._rows_of: tuple[int, ...] = ()  # the steps and the width that they were drawn for

    def compose(self) -> ComposeResult:
        yield HeaderLine()
        yield Input(placeholder="/ to filter by name, unit or meaning", compact=True)
        yield Lines(id="heads")
        with VerticalScroll(can_focus=False):
            yield MetricItems()
        yield Lines(id="meaning")
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        self.query_one(Input).cursor_blink = False  # each blink is bytes over the line
        self.query_one(MetricItems).focus()
        self._show()
        self.set_interval(POLL, self._show)

    def on_resize(self) -> None:
        self._show()

    def on_screen_resume(self) -> None:
        self._pins = pinned()
        self._rows.clear()
        self._show()

    def on_input_changed(self) -> None:
        items = self.query_one(MetricItems)
        self._show()
        items.action_move(-len(self.keys))  # the best one

    def on_input_submitted(self) -> None:
        self.query_one(MetricItems).focus()

    def on_metric_items_moved(self) -> None:
        self._tell_meaning()

    def on_items_chosen(self, event: MetricItems.Chosen) -> None:
        self.app.push_screen(MetricScreen(self.reader, event.name, self.keys))

    def action_filter(self) -> None:
        self.query_one(Input).focus()

    def action_back(self) -> None:
        """Escape: all metrics again; when they are all there, the dashboard."""
        field = self.query_one(Input)
        if not field.value and not field.has_focus:
            self.dismiss()
        field.value = ""
        self.query_one(MetricItems).focus()

    def action_move(self, distance: int) -> None:
        self.query_one(MetricItems).action_move(distance)

    def action_pin(self) -> None:
        key = self.query_one(MetricItems).cursor
        if key is not None:
            pin(self.app, key)
            self._pins = pinned()
            self._rows.clear()
            self._show()

    def _show(self) -> None:
        reader, store = self.reader, self.reader.series
        self.query_one(HeaderLine).show(reader.name, reader.id, reader.state, None)
        known, columns = store.keys(), self.size.width - 1
        self.keys = ranked(known, self.query_one(Input).value)
        drawn_for = (len(store.steps), store.last_step or 0, len(store.seams), len(known), columns)
        if drawn_for != self._rows_of:
            self._rows, self._rows_of = {}, drawn_for
        self.query_one("#heads", Lines).show([column_heads(len(self.keys), len(known), columns)])
        nothing = " no metric fits: escape shows all" if known else " no step has been logged yet"
        items = [Item(key, [self._row(key, columns)]) for key in self.keys]
        self.query_one(MetricItems).show(items or [Item(None, [[(nothing, "dim")]])])
        self._tell_meaning()

    def _row(self, key: str, columns: int) -> Row:
        row = self._rows.get(key)
        if row is None:
            reader = self.reader
            series, total = reader.series.get(key), reader.state.get("total")
            assert series is not None
            last = step_limit(reader.series.last_step or 0, total if isinstance(total, int) else None)
            row = metric_row(key, series, last, pinned=key in self._pins, columns=columns)
            self._rows[key] = row
        return row

    def _tell_meaning(self) -> None:
        key, columns = self.query_one(MetricItems).cursor, self.size.width
        told: list[Row] = [[(f" {clean(key)}", "title")], *meaning_rows(key, columns)] if key else []
        self.query_one("#meaning", Lines).show([*told, *([] for _ in range(3 - len(told)))])
