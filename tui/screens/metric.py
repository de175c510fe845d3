"""One metric, as large as the screen."""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Footer

from launcher.metrics.pins import pinned
from launcher.run.reader import RunReader
from tui.check_chart import check_plot
from tui.metric_rows import fact_rows, title
from tui.pinning import pin
from tui.widgets.header_line import HeaderLine
from tui.widgets.lines import Lines
from tui.widgets.metric_chart import MetricChart

POLL = 1.0  # seconds; the dashboard below reads the files


class MetricScreen(Screen[None]):
    """Chart, figures and meaning; left and right show the other metrics of the list."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,backspace,q,m", "dismiss", "back", id="metric.back", key_display="esc",
                tooltip="Back to where you came from"),
        Binding("left,up", "neighbour(-1)", "other metrics", id="metric.previous", key_display="←→",
                tooltip="Another metric"),
        Binding("right,down", "neighbour(1)", id="metric.next", show=False, key_display="←→",
                tooltip="Another metric"),
        Binding("p", "pin", "pin", id="metric.pin",
                tooltip="Put the metric on the dashboard, or take it off"),
    ]  # fmt: skip

    def __init__(self, reader: RunReader, key: str, keys: Sequence[str]) -> None:
        super().__init__()
        self.reader, self.key, self.keys = reader, key, keys

    def compose(self) -> ComposeResult:
        yield HeaderLine()
        yield MetricChart()
        yield Lines(id="facts")
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        self._show()
        self.set_interval(POLL, self._show)

    def on_resize(self) -> None:
        self._show()

    def action_neighbour(self, distance: int) -> None:
        if self.key in self.keys:
            self.key = self.keys[(self.keys.index(self.key) + distance) % len(self.keys)]
            self._show()

    def action_pin(self) -> None:
        pin(self.app, self.key)
        self._show()

    def _show(self) -> None:
        reader, store = self.reader, self.reader.series
        self.query_one(HeaderLine).show(reader.name, reader.id, reader.state, None)
        drawn = check_plot(self.key, store, reader.state.get("total"), (), ())
        drawn.title = title(self.key)
        self.query_one(MetricChart).show(drawn)
        series = store.get(self.key)
        if series:  # a resumed run may have forgotten its only value
            facts = fact_rows(self.key, series, pinned=self.key in pinned(), columns=self.size.width)
            self.query_one("#facts", Lines).show(facts)
