"""What happened to a run, the newest first."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll

from launcher.record.events import Action, LevelChange
from launcher.runs.watch.reader import RunReader
from tui.kit.check_list import CheckListScreen
from tui.kit.drawing.rows import Item, Row
from tui.kit.keys import KEYS
from tui.kit.widgets.items import Items
from tui.kit.widgets.lines import Lines
from tui.pages.events.words import FILTERS, event_items


class EventsScreen(CheckListScreen):
    """States, phases, flags, requests and exits with local times. Enter on a flag explains its check."""

    LEGENDS = ("Checks", "Runs")
    BINDINGS: ClassVar[list[BindingType]] = [*KEYS["events"]]

    def __init__(self, reader: RunReader, *, read_only: bool) -> None:
        super().__init__(reader, read_only=read_only)
        self._only = "all"
        self._shown = (-1, -1, "")

    def above(self) -> ComposeResult:
        yield Lines(id="filters")

    def rule_of(self, name: str) -> str | None:
        what = self.reader.events[int(name)].what
        return what.rule if isinstance(what, LevelChange | Action) else None

    def action_narrow(self, distance: int) -> None:
        names = list(FILTERS)
        self._only = names[(names.index(self._only) + distance) % len(names)]
        self.query_one(VerticalScroll).scroll_home(animate=False)
        self.show_items()

    def show_items(self) -> None:
        reader = self.reader
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
        self.query_one(Items).show(items or [Item(None, [[(" no such events yet", "dim")]])])
