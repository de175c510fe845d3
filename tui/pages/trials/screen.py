"""The trials of a run's fixes: which healed, did nothing, or broke something else."""

import asyncio
import contextlib
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from launcher.compare.trial_verdicts import Trials, trials_of
from launcher.core import paths
from launcher.core.text import clean
from launcher.record.layout import RunDir, find
from launcher.runs.watch.possible import Verb
from launcher.runs.watch.reader import RunReader
from tui.kit.actions.editing import edit_run
from tui.kit.keys import KEYS
from tui.kit.navigation import navigation
from tui.kit.offers import READ_ONLY, run_refusal
from tui.kit.page import Page
from tui.kit.widgets.header_line import HeaderLine
from tui.kit.widgets.items import Items
from tui.kit.widgets.key_bar import KeyBar
from tui.pages.trials.actions import begin_trials
from tui.pages.trials.words import trial_items

POLL = 3.0  # seconds; all run directories are looked through


class TrialsScreen(Page[None]):
    """Follows the trials of a run, or of the parent of one that is a trial. Enter opens the run of a trial.

    Of trials that were started here the newest line of trials.log stands below: what was queued, left out, or refused.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*KEYS["trials"]]

    def __init__(self, reader: RunReader, *, read_only: bool) -> None:
        super().__init__()
        self.reader, self.read_only = reader, read_only
        parent = reader.info.parent
        self.trials_of = parent.run if parent is not None and parent.trial else reader.id
        self._found: list[Trials] | None = None
        self._reading = False

    def compose(self) -> ComposeResult:
        yield HeaderLine()
        with VerticalScroll(can_focus=False):
            yield Items()
        yield Static(id="said", markup=False)
        yield KeyBar()

    def refusal(self, action: str) -> str | None:
        if action == "start" and self.read_only:
            return READ_ONLY
        if action == "start" and self.trials_of == self.reader.id:
            return self.reader.refusals.get(Verb.TRY)
        return run_refusal(action, self.reader, read_only=self.read_only)

    def on_mount(self) -> None:
        self.query_one(HeaderLine).read_only = self.read_only
        self.query_one(Items).focus()
        self._poll()
        self.set_interval(POLL, self._poll)

    def on_resize(self) -> None:
        self._show()

    def _poll(self) -> None:
        if not self._reading:  # a busy machine takes longer than POLL
            self._reading = True
            self.run_worker(self._read(), group="trials")

    async def _read(self) -> None:
        self._found, said = await asyncio.to_thread(lambda: (trials_of(self.trials_of), _said(self._tried)))
        self._reading = False
        self.query_one("#said", Static).update(Content(f" {clean(said)}" if said else ""))
        self._show()

    def _show(self) -> None:
        reader = self.reader
        self.query_one(HeaderLine).show(reader.name, reader.id, reader.state, None)
        if self._found is not None:
            self.query_one(Items).show(trial_items(self._found, self.size.width))

    @property
    def _tried(self) -> RunDir:
        return RunDir(paths.runs_dir() / Path(self.trials_of).name)

    def action_start(self) -> None:
        self.query_one("#said", Static).update(" reading the run and its checkpoints …")
        self.run_worker(begin_trials(self.app, self._tried), exclusive=True, group="start")

    def action_edit(self) -> None:
        chosen = self.query_one(Items).cursor
        changes = next((arm.changes for each in self._found or () for arm in each.arms if arm.run == chosen), ())
        edit_run(self.app, self._tried.read_info(), read_only=self.read_only, settings=changes)

    def on_items_chosen(self, event: Items.Chosen) -> None:
        navigation(self.app).show_run(find(event.name).path, self, read_only=self.read_only)


def _said(run: RunDir) -> str:
    """The newest line that the trials of a run printed."""
    with contextlib.suppress(OSError):
        return next((line for line in reversed(run.trials_log.read_text("utf-8", "replace").splitlines()) if line), "")
    return ""
