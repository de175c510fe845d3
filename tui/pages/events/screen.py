"""The events of a run, newest first."""

from textual.app import ComposeResult
from textual.containers import VerticalScroll

from launcher.record.events import Action, LevelChange
from tui.kit.drawing.rows import Item, Row
from tui.kit.keys import KEYS
from tui.kit.navigation import RunView
from tui.kit.run_page import EntryScreen, ItemsPage
from tui.kit.widgets.inspector import Inspection
from tui.kit.widgets.lines import Lines
from tui.kit.widgets.lists import Items
from tui.pages.events.inspection import inspect_event
from tui.pages.events.rows import FILTERS, HEADING, event_items


class EventsScreen(ItemsPage):
    """States, phases, flags, requests and exits with local times. Enter explains the check of a flag."""

    PAGE_NAME, ENTRY_NAME = "Events", "Event"
    LEGENDS = ("Rules", "Runs")
    BINDINGS = KEYS["events"]
    LIST = Items
    EMPTY = "States, phases, flags, requests and exits appear here. No such event yet; ← and → show other kinds."

    def __init__(self, run: RunView) -> None:
        super().__init__(run)
        self._only = "all"
        self._shown = (-1, -1, "")

    def body(self) -> ComposeResult:
        yield Lines(id="filters")
        yield from super().body()

    def items(self, columns: int) -> list[Item]:
        return event_items(self.reader.events, self._only, columns - 1)

    def open_entry(self, name: str) -> None:
        what = self.reader.events[int(name)].what
        if isinstance(what, LevelChange | Action) and what.rule is not None:
            super().open_entry(what.rule)
        else:
            self.app.push_screen(EntryScreen(self))

    def inspect(self, key: str | None, columns: int) -> Inspection:
        events = self.reader.events
        if key is None or int(key) >= len(events):
            return Inspection()
        return inspect_event(self, self.run, events[int(key)], columns)

    def action_narrow(self, distance: int) -> None:
        names = list(FILTERS)
        self._only = names[(names.index(self._only) + distance) % len(names)]
        self.query_one(VerticalScroll).scroll_home(animate=False)
        self.show_body()

    def show_body(self) -> None:
        shown = (self.reader.event_count, self.size.width, self._only)
        if shown == self._shown:
            return
        self._shown = shown
        filters: Row = [(" ", "text")]
        for name in FILTERS:
            filters.append((f"[{name}]", "live") if name == self._only else (f" {name} ", "dim"))
        self.query_one("#filters", Lines).show([filters, HEADING])
        super().show_body()
