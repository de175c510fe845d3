"""The selected entry of a page with a list, as a page of its own."""

from typing import Any

from textual.app import ComposeResult

from tui.kit.keys import KEYS
from tui.kit.page import HIDDEN, Page
from tui.kit.run_page import RunPage
from tui.kit.widgets.header_line import HeaderLine
from tui.kit.widgets.inspector import Inspected, Inspector
from tui.kit.widgets.key_bar import KeyBar


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
        """Shows the entry as it is now."""
        header = self.query_one(HeaderLine)
        header.page = self.source.ENTRY_NAME
        if isinstance(self.source, RunPage):
            header.read_only = self.source.read_only
            header.follow(self.source.reader)
        header.set_class(not isinstance(self.source, RunPage), HIDDEN)
        self.query_one(Inspector).show(self.source.inspect(self.source.selected(), self.size.width - 1))

    def action_neighbour(self, distance: int) -> None:
        self.source.move_selection(distance)
        self.query_one(Inspector).scroll_to_start()
        self.show()
