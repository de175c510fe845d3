"""The trials of a run's fixes: which healed, did nothing, or broke something else."""

import asyncio
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen

from launcher.record.layout import find
from launcher.run.reading.reader import RunReader
from launcher.run.reading.trials import Trials, trials_of
from tui.keys import KEYS
from tui.navigation import navigation
from tui.widgets.header_line import HeaderLine
from tui.widgets.items import Items
from tui.widgets.key_bar import KeyBar
from tui.words.trials import trial_items

POLL = 3.0  # seconds; all run directories are looked through


class TrialsScreen(Screen[None]):
    """Follows the trials of a run, or of the parent of one that is a trial. Enter opens the run of a trial."""

    BINDINGS: ClassVar[list[BindingType]] = [*KEYS["trials"]]

    def __init__(self, reader: RunReader, *, read_only: bool) -> None:
        super().__init__()
        self.reader, self.read_only = reader, read_only
        parent = reader.info.parent
        self.trials_of = parent.run if parent is not None and parent.trial else reader.id
        self._found: list[Trials] | None = None

    def compose(self) -> ComposeResult:
        yield HeaderLine()
        with VerticalScroll(can_focus=False):
            yield Items()
        yield KeyBar()

    def on_mount(self) -> None:
        self.query_one(HeaderLine).read_only = self.read_only
        self.query_one(Items).focus()
        self._poll()
        self.set_interval(POLL, self._poll)

    def on_resize(self) -> None:
        self._show()

    def _poll(self) -> None:
        self.run_worker(self._read(), exclusive=True, group="trials")

    async def _read(self) -> None:
        self._found = await asyncio.to_thread(trials_of, self.trials_of)
        self._show()

    def _show(self) -> None:
        reader = self.reader
        self.query_one(HeaderLine).show(reader.name, reader.id, reader.state, None)
        if self._found is not None:
            self.query_one(Items).show(trial_items(self._found, self.size.width))

    def on_items_chosen(self, event: Items.Chosen) -> None:
        navigation(self.app).show_run(find(event.name).path, read_only=self.read_only)
