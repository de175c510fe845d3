"""The base of lists whose entries explain a check: the checklist, the events."""

from textual.app import ComposeResult
from textual.containers import VerticalScroll

from launcher.runs.watch.reader import RunReader
from tui.kit.navigation import navigation
from tui.kit.page import Page, run_refusal
from tui.kit.widgets.header_line import HeaderLine
from tui.kit.widgets.items import Items
from tui.kit.widgets.key_bar import KeyBar

POLL = 1.0  # seconds; the dashboard below reads the files


class CheckListScreen(Page[None]):
    """Its `Items` follow the run; enter opens the check that one is about."""

    def __init__(self, reader: RunReader, *, read_only: bool) -> None:
        super().__init__()
        self.reader, self.read_only = reader, read_only

    def compose(self) -> ComposeResult:
        yield HeaderLine()
        yield from self.above()
        with VerticalScroll(can_focus=False):
            yield Items()
        yield KeyBar()

    def above(self) -> ComposeResult:
        """What stands between the header and the list."""
        yield from ()

    def show_items(self) -> None:
        """Hands the entries to `Items`."""
        raise NotImplementedError

    def rule_of(self, name: str) -> str | None:
        """The check that the entry of this name is about."""
        return name

    def refusal(self, action: str) -> str | None:
        return run_refusal(action, self.reader, read_only=self.read_only)

    def on_mount(self) -> None:
        self.query_one(HeaderLine).read_only = self.read_only
        self.query_one(Items).focus()
        self._show()
        self.set_interval(POLL, self._show)

    def on_resize(self) -> None:
        self._show()

    def on_items_chosen(self, event: Items.Chosen) -> None:
        rule = self.rule_of(event.name)
        if rule is not None:
            navigation(self.app).show_check(self.reader, rule, read_only=self.read_only)

    def _show(self) -> None:
        reader = self.reader
        self.query_one(HeaderLine).show(reader.name, reader.id, reader.state, None)
        self.show_items()
