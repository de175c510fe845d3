"""Base classes of a run's pages (header, body, keys), of pages with entries, and of one entry."""

import asyncio
from functools import partial
from typing import Any, ClassVar

from textual import work
from textual.app import ComposeResult
from textual.containers import VerticalScroll

from launcher.runs.watch.reader import RunReader
from tui.kit.actions.background import in_background, reported
from tui.kit.drawing.rows import Item, paragraph
from tui.kit.keys import KEYS
from tui.kit.navigation import RunView, navigation
from tui.kit.page import HIDDEN, Page, run_refusal
from tui.kit.terminal import copied
from tui.kit.widgets.header_line import HeaderLine
from tui.kit.widgets.inspector import Inspected, Inspection, Inspector
from tui.kit.widgets.key_bar import KeyBar
from tui.kit.widgets.lists import Items, Listing


class RunPage(Page[None]):
    """A page defines its `body` and `show_body`. The dashboard below reads the run's files."""

    POLL: ClassVar[float] = 1.0  # seconds between two looks at new data

    def __init__(self, run: RunView) -> None:
        super().__init__()
        self.run, self.lens = run, run.lens

    @property
    def reader(self) -> RunReader:
        return self.run.reader

    @property
    def read_only(self) -> bool:
        return self.run.read_only

    def compose(self) -> ComposeResult:
        yield HeaderLine()
        yield from self.body()
        yield KeyBar()

    def body(self) -> ComposeResult:
        """The widgets between the header and the keys."""
        raise NotImplementedError

    def show_body(self) -> None:
        """Passes the run's data to the body's widgets."""
        raise NotImplementedError

    def on_mount(self) -> None:
        header = self.query_one(HeaderLine)
        header.page, header.read_only = self.PAGE_NAME, self.read_only
        self.poll()
        self.set_interval(self.POLL, self.poll)

    def on_resize(self) -> None:
        self.show()

    def poll(self) -> None:
        """Rereads the run."""
        self.show()

    def show(self) -> None:
        """Shows the current state of the run."""
        self.query_one(HeaderLine).follow(self.reader)
        self.show_body()

    def refusal(self, action: str) -> str | None:
        return run_refusal(action, self.reader, read_only=self.read_only)

    @work(group="explain")
    async def explain(self) -> None:
        """Finds the meaning of the errors so far."""
        await asyncio.to_thread(self.reader.explain)
        self.show()

    ASKS = "failure"
    """The subject of its case: "failure" or "health"."""

    @work(group="case", exclusive=True)
    async def action_copy_case(self) -> None:
        """Copies the case file of the run."""
        from launcher.report.case import case_of

        with reported(self.app):
            case = await in_background(partial(case_of, self.reader.dir, health=self.ASKS == "health"))
            copied(self.app, "case", case.text, f"Copied {len(case.text):,} characters")

    def action_show_case(self) -> None:
        navigation(self.app).show("case", self.run, self.ASKS)

    def action_fork(self) -> None:
        from tui.kit.actions.checkpoints import begin_fork

        begin_fork(self, self.reader)


class ItemsPage(Inspected[None], RunPage):
    """A page of entries about a run, several rows each; enter opens an entry's check."""

    STACKS = True
    LIST: ClassVar[type[Items]]
    EMPTY: ClassVar[str] = ""  # is shown when there are no entries

    def items(self, columns: int) -> list[Item]:
        """The entries in order."""
        raise NotImplementedError

    def body(self) -> ComposeResult:
        yield from self.split(VerticalScroll(self.LIST(), can_focus=False))

    def inspect(self, key: str | None, columns: int) -> Inspection:
        """The entry itself; a page may add more."""
        return Inspection(rows=[row for item in self.items(columns) if item.name == key for row in item.rows])

    @property
    def listed(self) -> Items:
        return self.query_one(self.LIST)

    def show_body(self) -> None:
        self.listed.show(self.items(self.list_columns) or [Item(None, paragraph(self.EMPTY, "dim", self.list_columns))])
        self.show_inspection()

    def on_listing_moved(self) -> None:
        self.inspect_soon()

    def on_listing_chosen(self, event: Items.Chosen) -> None:
        self.open_entry(event.key)

    def open_entry(self, name: str) -> None:
        """Handles enter on the entry of this name."""
        navigation(self.app).show("check", self.run, name)


class EntryScreen(Page[None]):
    """Shows the selected entry of the page below, and follows that page."""

    BINDINGS = KEYS["entry"]

    def __init__(self, source: Inspected[Any]) -> None:
        super().__init__()
        self.source = source

    def compose(self) -> ComposeResult:
        yield HeaderLine()
        yield from self.body()
        yield KeyBar()

    def body(self) -> ComposeResult:
        """The widgets between the header and the keys."""
        yield Inspector()

    def on_mount(self) -> None:
        self.show()
        self.set_interval(0.5, self.show)

    def on_resize(self) -> None:
        self.show()

    def show(self) -> None:
        """Shows the current entry."""
        header = self.query_one(HeaderLine)
        header.page = self.source.ENTRY_NAME
        if isinstance(self.source, RunPage):
            header.read_only = self.source.read_only
            header.follow(self.source.reader)
        header.set_class(not isinstance(self.source, RunPage), HIDDEN)
        self.query_one(Inspector).show(self.source.inspect(self.source.selected(), self.size.width - 1))

    def action_neighbour(self, distance: int) -> None:
        self.source.query_one(Listing).action_move(distance)
        self.query_one(Inspector).scroll_to_start()
        self.show()
