"""The base of the pages about a run: a header that follows it, the body, the keys."""

import asyncio
from typing import ClassVar

from textual import work
from textual.app import ComposeResult

from launcher.runs.watch.reader import RunReader
from tui.kit.navigation import RunView
from tui.kit.page import Page, run_refusal
from tui.kit.widgets.header_line import HeaderLine
from tui.kit.widgets.key_bar import KeyBar


class RunPage(Page[None]):
    """A page declares its `body` and how to show it. The dashboard below reads the files of the run."""

    POLL: ClassVar[float] = 1.0  # seconds between two looks at what was read

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
        """Hands what was read to the widgets of the body."""
        raise NotImplementedError

    def on_mount(self) -> None:
        self.query_one(HeaderLine).read_only = self.read_only
        self.poll()
        self.set_interval(self.POLL, self.poll)

    def on_resize(self) -> None:
        self.show()

    def poll(self) -> None:
        """Looks again."""
        self.show()

    def show(self) -> None:
        """Shows the run as it is now."""
        self.query_one(HeaderLine).follow(self.reader)
        self.show_body()

    def refusal(self, action: str) -> str | None:
        return run_refusal(action, self.reader, read_only=self.read_only)

    @work(group="explain")
    async def explain(self) -> None:
        """Finds out what the errors so far mean."""
        await asyncio.to_thread(self.reader.explain)
        self.show()

    def action_fork(self) -> None:
        from tui.kit.actions.checkpoints import begin_fork

        begin_fork(self, self.reader)
