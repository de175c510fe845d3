"""The trials of a run's fixes: which helped, had no effect, or broke something else."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from pathlib import Path

from textual import work
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from launcher.compare.trial_verdicts import PLAN, Trials, trials_of, waiting_trials
from launcher.core import paths
from launcher.core.format import SHORT_ID, counted, number
from launcher.core.text import clean
from launcher.record.layout import RunDir, find
from launcher.record.queued import Queued
from launcher.runs.watch.possible import Verb
from tui.kit.actions.editing import edit_run
from tui.kit.actions.run_actions import begin_trials
from tui.kit.drawing import glyphs
from tui.kit.drawing.rows import Item, Row, labelled, paragraph, put
from tui.kit.keys import KEYS
from tui.kit.navigation import RunView, navigation
from tui.kit.page import READ_ONLY
from tui.kit.run_page import ItemsPage
from tui.kit.widgets.inspector import Inspection
from tui.kit.widgets.lists import Items
from tui.pages.trials.inspection import VERDICTS, inspect_trial

_RUN, _STEP, _TEXT = 18, 24, 35  # columns


def trial_items(found: Sequence[Trials], columns: int) -> list[Item]:
    """A heading per flag and checkpoint, an entry per trial, named by its run."""
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
            rows = labelled(row, " ".join(arm.changes) or "control run", "text", _TEXT, columns)
            rows += paragraph(arm.told + gap, "dim", columns, indent=_TEXT, least=16)
            items.append(Item(arm.run, rows))
    return items


def waiting_items(waiting: Sequence[Queued]) -> list[Item]:
    """The waiting trials in the queue."""
    items = [Item(None, [[(" waiting in the queue (Q)", "title")]])] if waiting else []
    for each in waiting:
        row = put([(f" {glyphs.WAITING} waiting", "dim")], _RUN, [(each.id[:SHORT_ID], "dim")])
        changes = [setting for setting in each.settings if setting.partition("=")[0] not in PLAN]
        items.append(Item(None, [put(row, _TEXT, [(clean(" ".join(changes) or "control run"), "text")])]))
    return items


class TrialsScreen(ItemsPage):
    """Follows the trials of a run, or of its parent if the run is a trial. Enter opens a trial's run.

    For trials started here, the newest line of trials.log is below: queued, omitted or refused ones.
    """

    PAGE_NAME = "Trials"
    BINDINGS = KEYS["trials"]
    LIST = Items
    EMPTY = (
        "No trials yet. A trial continues the run from before its first flag with one fix, alongside a control run "
        "without it. For a failed run, a trial is a short run without the suspected setting."
    )
    POLL = 3.0  # seconds: each look reads all run directories

    def __init__(self, run: RunView) -> None:
        super().__init__(run)
        parent = self.reader.info.parent
        self.trials_of = parent.run if parent is not None and parent.trial else self.reader.id
        self._trials: list[Trials] | None = None
        self._waiting: list[Queued] = []
        self._reading = False

    def body(self) -> ComposeResult:
        yield from super().body()
        yield Static(id="said", markup=False)

    def refusal(self, action: str) -> str | None:
        if action == "start" and self.read_only:
            return READ_ONLY
        if action == "start" and self._waiting:
            return f"{counted(len(self._waiting), 'trial')} of this run already in the queue"
        if action == "start" and self.trials_of == self.reader.id:
            return self.reader.refusals.get(Verb.TRY)
        if action == "edit" and self.is_mounted and self.listed.cursor is None:
            return "there are no trials"
        return super().refusal(action)

    def poll(self) -> None:
        if not self._reading:  # a busy machine takes longer than POLL
            self._reading = True
            self._read()

    @work(group="trials")
    async def _read(self) -> None:
        of = self.trials_of
        self._trials, self._waiting, newest = await asyncio.to_thread(
            lambda: (trials_of(of), waiting_trials(of), _newest_line(self._tried))
        )
        self._reading = False
        self.query_one("#said", Static).update(Content(f" {clean(newest)}" if newest else ""))
        self.show()

    def items(self, columns: int) -> list[Item]:
        if found := [*waiting_items(self._waiting), *trial_items(self._trials or (), columns)]:
            return found
        refused = self.refusal("start")
        start = f"No trial can start now: {refused}." if refused else "Press T to start them."
        return [Item(None, paragraph(f"{self.EMPTY} {start}", "dim", columns))]

    def inspect(self, key: str | None, columns: int) -> Inspection:
        for trials in self._trials or ():
            for arm in trials.arms:
                if arm.run == key:
                    return inspect_trial(self, trials, arm, columns)
        return Inspection()

    def show_body(self) -> None:
        if self._trials is not None:
            super().show_body()

    @property
    def _tried(self) -> RunDir:
        return RunDir(paths.runs_dir() / Path(self.trials_of).name)

    @work(group="start", exclusive=True)
    async def action_start(self) -> None:
        self.query_one("#said", Static).update(" reading the run and its checkpoints …")
        await begin_trials(self.app, self._tried)

    def action_edit(self) -> None:
        chosen = self.listed.cursor
        changes = next((arm.changes for each in self._trials or () for arm in each.arms if arm.run == chosen), ())
        edit_run(self.app, self._tried.read_info(), read_only=self.read_only, settings=changes)

    def open_entry(self, name: str) -> None:
        navigation(self.app).show_run(find(name).path, self, read_only=self.read_only)


def _newest_line(run: RunDir) -> str:
    """The newest line in the trials' output of a run."""
    with contextlib.suppress(OSError):
        return next((line for line in reversed(run.trials_log.read_text("utf-8", "replace").splitlines()) if line), "")
    return ""
