"""What happened to a run, the newest first."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Footer

from launcher.run.explain import Explainer
from launcher.run.reader import RunReader
from tui.drawing.rows import Row
from tui.widgets.header_line import HeaderLine
from tui.widgets.items import Item, Items
from tui.widgets.lines import Lines
from tui.words.event import FILTERS, event_items

POLL = 1.0  # seconds; the dashboard below reads the files


class EventsScreen(Screen[None]):
    """States, phases, flags, requests and exits with local times. Enter on a flag explains its check."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,backspace,v,q", "dismiss", "back", id="events.back", key_display="v",
                tooltip="Back to the dashboard"),
        Binding("right,f,tab", "narrow(1)", "narrow", id="events.narrow", key_display="←→",
                tooltip="All events, or some kinds"),
        Binding("left,shift+tab", "narrow(-1)", id="events.narrow-back", show=False, key_display="←→",
                tooltip="All events, or some kinds"),
    ]  # fmt: skip

    def __init__(self, reader: RunReader, explainer: Explainer, *, read_only: bool) -> None:
        super().__init__()
        self.reader, self.explainer, self.read_only = reader, explainer, read_only
        self._only = "all"
        self._shown = (-1, -1, "")

    def compose(self) -> ComposeResult:
        yield HeaderLine()
        yield Lines(id="filters")
        with VerticalScroll(can_focus=False):
            yield Items()
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        self.query_one(HeaderLine).read_only = self.read_only
        self.query_one(Items).focus()
        self._show()
        self.set_interval(POLL, self._show)

    def on_resize(self) -> None:
        self._show()

    def on_items_chosen(self, event: Items.Chosen) -> None:
        from tui.screens.check_detail import CheckDetailScreen

        rule = self.reader.events[int(event.name)].get("rule")
        if isinstance(rule, str):
            screen = CheckDetailScreen(self.reader, self.explainer, rule, read_only=self.read_only)
            self.app.push_screen(screen)

    def action_narrow(self, distance: int) -> None:
        names = list(FILTERS)
        self._only = names[(names.index(self._only) + distance) % len(names)]
        self.query_one(VerticalScroll).scroll_home(animate=False)
        self._show()

    def _show(self) -> None:
        reader = self.reader
        self.query_one(HeaderLine).show(reader.name, reader.id, reader.state, None)
        shown = (reader.event_count, self.size.width, self._only)
        if shown == self._shown:
            return
        self._shown = shown
        filters: Row = [(" Events  ", "title")]
        for name in FILTERS:
            filters.append(
                (f"[{name}]" if name == self._only else f" {name} ", "live" if name == self._only else "dim")
            )
        self.query_one("#filters", Lines).show([filters])
        items = event_items(reader.events, self._only, self.size.width - 1)
        self.query_one(Items).show(items or [Item(None, [[(" nothing of this kind yet", "dim")]])])
