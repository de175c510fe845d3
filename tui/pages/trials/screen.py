"""The trials of a run's fixes: which healed, did nothing, or broke something else."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from launcher.compare.trial_verdicts import (
    BROKE,
    DIFFERENT,
    GOING,
    HEALED,
    NOTHING,
    PARTLY,
    REPEATED,
    Trials,
    trials_of,
)
from launcher.core import paths
from launcher.core.errors import UserError
from launcher.core.format import SHORT_ID, number
from launcher.core.text import clean
from launcher.record.layout import RunDir, find
from launcher.runs.watch.possible import Verb
from launcher.runs.watch.reader import RunReader
from tui.kit.actions.editing import edit_run
from tui.kit.dialogs.choose import ConfirmScreen
from tui.kit.drawing import glyphs
from tui.kit.drawing.rows import Item, Row, put
from tui.kit.keys import KEYS
from tui.kit.navigation import navigation
from tui.kit.page import READ_ONLY, Page, run_refusal
from tui.kit.widgets.header_line import HeaderLine
from tui.kit.widgets.items import Items
from tui.kit.widgets.key_bar import KeyBar

if TYPE_CHECKING:
    from textual.app import App

    from launcher.compare.trial_runs import Plan


VERDICTS: dict[str, tuple[str, str]] = {  # verdict -> sign, role
    HEALED: (glyphs.OK, "ok"),
    PARTLY: (glyphs.NOTICE, "notice"),
    NOTHING: (glyphs.WARN, "warn"),
    BROKE: (glyphs.CRITICAL, "critical"),
    REPEATED: (glyphs.OK, "dim"),
    DIFFERENT: (glyphs.NOTICE, "notice"),
    GOING: (glyphs.RUNNING, "live"),
}
EMPTY = " no trials of this run yet; S tries the fixes of its first flag"
_RUN, _STEP, _TEXT = 18, 24, 35  # columns


def trial_items(found: Sequence[Trials], columns: int) -> list[Item]:
    """A heading for each flag and checkpoint, an entry for each trial, named by its run; a line without trials."""
    items: list[Item] = []
    for each in found:
        place = f"step {each.step}" if each.step else "the start"
        items.append(Item(None, [[(f" {each.rule}", "title"), (f" from {place} of {clean(each.parent)}", "dim")]]))
        for arm in each.arms:
            sign, role = VERDICTS.get(arm.verdict, (glyphs.NONE, "dim"))
            row: Row = [(f" {sign} {arm.verdict}", role)]
            row = put(row, _RUN, [(arm.run[:SHORT_ID], "dim")])
            row = put(row, _STEP, [(f"{arm.step}/{arm.planned}", "text")])
            gap = "" if arm.reward is None else f" (reward {'+' * (arm.reward >= 0)}{number(arm.reward)})"
            width = max(columns - _TEXT - 1, 16)
            words = wrap(clean(" ".join(arm.changes)), width) or ["untouched twin"]
            rows = [put(row, _TEXT, [(words[0], "text")])]
            rows += [[(" " * _TEXT + line, "text")] for line in words[1:]]
            rows += [[(" " * _TEXT + line, "dim")] for line in wrap(clean(arm.told) + gap, width)]
            items.append(Item(arm.run, rows))
    return items or [Item(None, [[(EMPTY, "dim")]])]


async def begin_trials(app: App[Any], run: RunDir) -> None:
    """Shows what would be tried and what it takes; when confirmed, the trials go on without the screen.

    Runs in a worker.
    """
    from launcher.compare.trial_runs import plan, start_apart

    def from_checkpoint_or_start() -> Plan:
        try:
            return plan(run)
        except UserError:  # there is no checkpoint from before the flag; what else is wrong is said again
            return plan(run, at=0)

    try:
        planned = await asyncio.to_thread(from_checkpoint_or_start)
        details = "\n".join([f"{planned.name}:", *planned.lines, "", f"Cost: {planned.cost}"])
        if await app.push_screen_wait(ConfirmScreen("Try these fixes?", details, "y  start", "n  cancel")):
            await asyncio.to_thread(start_apart, planned)
    except (UserError, OSError) as error:
        app.notify(str(error), title="No trials", severity="warning", markup=False, timeout=20)


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
