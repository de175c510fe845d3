"""The runs of this machine, with the presets below."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from textual import work
from textual.app import ComposeResult
from textual.widgets import Input

from launcher.core.errors import UserError
from launcher.record.layout import RunDir
from launcher.record.state import current
from launcher.runs.supervise.spawn import adopt, wake_queue
from tui.kit.actions.background import in_background
from tui.kit.actions.editing import edit_preset, edit_run
from tui.kit.actions.run_actions import (
    compare_marked,
    delete_runs,
    export_run,
    note_run,
    report_runs,
    stop_runs,
    toggle_mark,
)
from tui.kit.drawing.rows import Row, paragraph
from tui.kit.keys import KEYS
from tui.kit.list_page import ListPage
from tui.kit.navigation import navigation
from tui.kit.page import HIDDEN, READ_ONLY
from tui.kit.widgets.inspector import Inspection
from tui.kit.widgets.key_bar import KeyBar
from tui.kit.widgets.lists import RunTable
from tui.pages.runs.elsewhere import THERE, Elsewhere, open_elsewhere
from tui.pages.runs.inspection import inspect_preset, inspect_run, read_charts, read_preset
from tui.pages.runs.run_lines import PRESET, QUEUED, RUN, RunLines, preset_files, read_presets, welcome
from tui.pages.runs.run_list import ORDERS, RunList

if TYPE_CHECKING:
    from launcher.preset.files import Summary

POLL = 2.0  # seconds
POLL_ELSEWHERE = 60.0  # seconds; each costs a start of ppo-tui there


class RunsScreen(ListPage[None]):
    """Enter opens a run or a preset's launch. The cursor starts on the current run, otherwise the newest live one."""

    LEGENDS = ("Runs", "Rules")
    BINDINGS = KEYS["runs"]
    TABLE = RunTable
    PARTS = (RunTable, "#about")
    DETAIL = "about"
    KEPT = 8  # whole runs

    def __init__(self, *, read_only: bool, current: Path | None = None) -> None:
        super().__init__()
        self.read_only, self.current = read_only, current
        self.list = RunList()
        self.lines = RunLines(self.list)
        self._read: list[tuple[Path, int]] = []  # their files and when these were changed
        self._looking = True  # whether a look at the files runs
        self._on_run = False
        self._refused = ""
        self._tuned: set[str] = set()  # presets that tune makes
        self._compared: object = None  # the runs with compared settings, and the presets at that time

    def compose(self) -> ComposeResult:
        yield from self.make_list()
        yield Input(id="runs-find", placeholder="name, state, verdict or tag", compact=True, classes=HIDDEN)
        yield KeyBar()

    def on_mount(self) -> None:
        self.app.title = self.app.TITLE or ""
        self._open()

    @property
    def presets(self) -> Mapping[str, Summary]:
        return self.lines.presets

    @work(exclusive=True)
    async def _open(self) -> None:
        """Runs first, then presets (pydantic and YAML), then scores (megabytes of steps)."""
        await asyncio.to_thread(self.list.refresh)
        self._fill()
        live = (run.path for run in self.list.runs if run.state.live)
        newest = self.list.runs[0].path if self.list.runs else None
        wanted = f"{RUN}{self.current or next(live, newest)}"
        if wanted in self.lines.shown:
            self.table.move_to(wanted)
        await self._read_presets()
        await self._read_scores()
        if not self.list.runs:
            self.lines.welcome, suggested = await asyncio.to_thread(welcome)
            self._fill()
            if (key := f"{PRESET}{suggested}") in self.table.keys:
                self.table.move_to(key)
        self._looking = False
        self.set_interval(POLL, self._poll)
        self._ask_elsewhere()
        self.set_interval(POLL_ELSEWHERE, self._ask_elsewhere)

    def _ask_elsewhere(self) -> None:
        """Queries each machine separately, because a failing connection takes seconds."""
        try:
            self.lines.elsewhere = elsewhere = self.lines.elsewhere or Elsewhere()
        except UserError as error:
            self.notify(str(error), severity="warning", markup=False)
            return
        for name in elsewhere.names if self.is_active else ():
            self.in_worker(partial(self._ask, elsewhere, name), f"ask {name}")

    async def _ask(self, elsewhere: Elsewhere, name: str) -> None:
        await in_background(partial(elsewhere.ask, name))
        self._fill()

    async def _read_presets(self) -> None:
        """Reads the presets if one of their files changed; reading all takes most of a second.

        The cursor moves to a new preset: copied, renamed, imported, or saved in the editor; not to a tuned one, as the
        user may have moved on in the minutes that tuning takes.
        """
        files = await asyncio.to_thread(preset_files)
        if files != self._read:
            known = self.presets
            self.lines.presets = {found.name: found for found in await asyncio.to_thread(read_presets)}
            self._read = files
            self._fill()
            if known:
                new = [f"{PRESET}{name}" for name in self.presets if name not in known and name not in self._tuned]
                made = [key for key in new if key in self.table.keys]
                if len(made) == 1:
                    self.table.move_to(made[0])

    def on_screen_resume(self) -> None:
        self._poll()
        if self.presets:  # the editor may have written one
            self.in_worker(self._read_presets, "presets")

    def _poll(self) -> None:
        if self.is_active and not self._looking:
            self.in_worker(self._look, "poll", exclusive=False)

    async def _look(self) -> None:
        self._looking = True
        if await asyncio.to_thread(self.list.refresh):
            self._fill()
        if self.list.refused not in ("", self._refused):
            self.notify(self.list.refused, severity="warning", markup=False, timeout=20)
        self._refused = self.list.refused
        await asyncio.to_thread(adopt, [(RunDir(run.path), run.state) for run in self.list.runs])
        with suppress(OSError):
            await asyncio.to_thread(wake_queue, again=True)
        await self._read_scores()
        self._looking = False

    async def _read_scores(self) -> None:
        unread = True
        while unread and self.whole:
            shown = [Path(key.removeprefix(RUN)) for key in self.table.in_sight if key.startswith(RUN)]
            unread = await asyncio.to_thread(self.list.read_scores, shown)
            if self.is_active:  # below another screen it would repaint that one
                self.table.redraw()
        await self._compare_settings()
        if self.lines.order == "best score first":
            self._fill()
        elif self.is_active:
            self.show_detail()

    async def _compare_settings(self) -> None:
        """Compares the settings of the visible runs."""
        wanted = [Path(key.removeprefix(RUN)) for key in self.table.in_sight if key.startswith(RUN)]
        compared = [sorted(wanted), self._read]
        if compared != self._compared:
            self._compared = compared
            self.lines.changes = await asyncio.to_thread(self.list.changes, wanted)
            if self.is_active:
                self.table.redraw()

    def on_listing_moved(self) -> None:
        if self._on_run != (self.chosen_run is not None):  # other keys work: the footer paints itself whole
            self._on_run = not self._on_run
            self.refresh_bindings()

    def on_listing_chosen(self, event: RunTable.Chosen) -> None:
        if event.key.startswith(RUN):
            self._show_run(Path(event.key.removeprefix(RUN)))
        elif event.key.startswith(QUEUED):
            self.action_queue()
        elif event.key.startswith(THERE):
            name, run, cluster = self.lines.place(event.key)
            self.in_worker(partial(open_elsewhere, self, name, run, cluster, read_only=self.read_only), "start")
        elif self.read_only:
            self.notify("Read-only: use `ppo-tui` to start runs", severity="warning")
        elif not self._doing("start"):  # a second `enter` would open a second page
            self._start(event.key.removeprefix(PRESET))

    def on_input_changed(self, event: Input.Changed) -> None:
        self.lines.words = event.value
        self._fill()

    def on_input_submitted(self) -> None:
        self.query_one(Input).add_class(HIDDEN)
        self.table.focus()

    def refusal(self, action: str) -> str | None:
        if self.read_only and action in ("stop", "delete", "note", "preset", "tune", "import", "prepare_data"):
            return READ_ONLY
        if action in ("mark", "export", "note") and self.chosen_run is None:
            return "select a run"
        if action in ("compare", "stop") and not self._meant:
            return "select a run, or mark several with space"
        if action == "stop" and not any(self._goes(run) for run in self._meant):
            return "no selected run is running"
        if action == "delete" and any(self._goes(run) for run in self._meant):
            return "the run has not ended; stop it first (x)"
        if action in ("delete", "edit") and not self._meant and self._chosen_preset is None:
            return "select a run or a preset"
        return "select a preset" if action in ("preset", "tune") and self._chosen_preset is None else None

    def _goes(self, run: RunDir) -> bool:
        shown = self.lines.shown.get(f"{RUN}{run.path}")
        return (shown.state if shown is not None else current(run, checks=False)).going

    @property
    def live_run(self) -> str:
        """A run that continues after the screen closes; empty without one."""
        return next((run.id for run in self.list.runs if run.state.live), "")

    def action_leave(self) -> None:
        """Shows all runs again; the list is the last page on the way back."""
        field = self.query_one(Input)
        if field.value or self.focused is field:
            field.value = ""
            self.on_input_submitted()

    def action_jump(self) -> None:
        """Jumps from the runs to the presets and back."""
        kind = PRESET if (self.table.cursor or "").startswith(RUN) else RUN
        if (key := next((key for key in self.table.keys if key.startswith(kind)), None)) is not None:
            self.table.move_to(key)

    def action_find(self) -> None:
        for field in self.query(Input):  # none while the page opens or closes
            self.open_field(field)

    def action_edit(self) -> None:
        if self.chosen_run is not None:
            edit_run(self.app, RunDir(self.chosen_run).read_info(), read_only=self.read_only)
        elif self._chosen_preset is not None:
            edit_preset(self.app, self._chosen_preset, read_only=self.read_only)

    def action_order(self) -> None:
        self.lines.order = ORDERS[(ORDERS.index(self.lines.order) + 1) % len(ORDERS)]
        self._fill()

    def action_mark(self) -> None:
        if self.chosen_run is not None:
            toggle_mark(self.app, self.chosen_run)
            self.table.redraw()

    def action_compare(self) -> None:
        compare_marked(self.app, self.chosen_run)

    def action_stop(self) -> None:
        self.in_worker(partial(stop_runs, self.app, [run for run in self._meant if self._goes(run)]), "stop")

    def action_delete(self) -> None:
        if not self._meant:
            self.action_preset("delete")
        else:
            self._delete(self._meant)

    def action_note(self) -> None:
        if self.chosen_run is not None:
            self._note(RunDir(self.chosen_run))

    def action_queue(self) -> None:
        navigation(self.app).show_queue(read_only=self.read_only)

    def action_prepare_data(self) -> None:
        from tui.pages.runs.preset_actions import prepare_data

        self.in_worker(partial(prepare_data, self.app), "data")

    @property
    def _meant(self) -> list[RunDir]:
        """The marked runs, otherwise the selected one."""
        marked = [run for run in navigation(self.app).marked if run.is_dir()]
        return [RunDir(run) for run in marked or filter(None, [self.chosen_run])]

    def action_export(self) -> None:
        if self.chosen_run is not None:
            self.in_worker(partial(export_run, self, RunDir(self.chosen_run)), "export")

    def action_report(self) -> None:
        if runs := self._meant:
            self.in_worker(partial(report_runs, self, *runs), "report")

    def action_preset(self, what: str) -> None:
        if (name := self._chosen_preset) is not None:
            self._keep_preset(what, name)

    def action_tune(self) -> None:
        if self._doing("tune"):
            self.notify("A preset is being tuned")
        elif (name := self._chosen_preset) is not None:
            self.in_worker(partial(self._tune, name), "tune")

    async def _tune(self, name: str) -> None:
        from tui.pages.runs.preset_actions import tune_preset

        self._tuned.add(f"{name}-tuned")  # whoever reads it first: a page that closes makes the list read, as well
        await tune_preset(self.app, name)
        await self._read_presets()

    def action_import(self) -> None:
        from tui.pages.runs.pasting import import_anything

        self.in_worker(partial(import_anything, self), "keep")

    @work(exclusive=True, group="keep")
    async def _keep_preset(self, what: str, name: str) -> None:
        from tui.pages.runs import preset_actions as presets

        act = {"copy": presets.copy_preset, "rename": presets.rename_preset, "delete": presets.delete_preset}
        await act[what](self.app, name)
        await self._read_presets()

    @work(exclusive=True, group="delete")
    async def _delete(self, runs: list[RunDir]) -> None:
        await delete_runs(self.app, runs)
        if self.current is not None and not self.current.is_dir():
            self.current = None
        self._poll()

    @work(exclusive=True, group="note")
    async def _note(self, run: RunDir) -> None:
        await note_run(self, run)
        if await asyncio.to_thread(self.list.refresh):
            self._fill()

    def _show_run(self, run: Path) -> None:
        navigation(self.app).show_run(run, self, read_only=self.read_only)

    def _doing(self, group: str) -> bool:
        return any(worker.group == group and worker.is_running for worker in self.workers)

    @work(exclusive=True, group="start")
    async def _start(self, preset: str) -> None:
        """Shows the launch page, and opens the run once its supervisor runs."""
        outcome = await navigation(self.app).launch(preset)
        if isinstance(outcome, Path):
            self._show_run(outcome)

    @property
    def chosen_run(self) -> Path | None:
        """The run under the cursor."""
        key = self.table.cursor or ""
        return Path(key.removeprefix(RUN)) if key.startswith(RUN) else None

    @property
    def _chosen_preset(self) -> str | None:
        key = self.table.cursor or ""
        return key.removeprefix(PRESET) if key.startswith(PRESET) else None

    def _fill(self) -> None:
        if self.whole:
            self.show_list(self.lines.keys())

    def row(self, key: str, columns: int) -> Row:
        return self.lines.line(key, columns, navigation(self.app).marked)

    def detail(self, key: str | None, columns: int) -> list[Row]:
        """A sentence or two about the chosen line."""
        spans = self.lines.about(key or "")
        return [row for text, role in spans for row in paragraph(text, role, columns, most=2)]

    def inspect(self, key: str | None, columns: int) -> Inspection:
        run, preset = self.lines.shown.get(key or ""), self.presets.get((key or "").removeprefix(PRESET))
        if run is not None:
            entry = str(run.path)
            read = partial(read_charts, run.path, self.found(entry))
            charts = None if run.waits else self.read_once(entry, read, run.state)
            return inspect_run(run, charts, self.lines.changes.get(run.path, ()), columns)
        if preset is not None:
            facts = self.read_once(f"{PRESET}{preset.name}", partial(read_preset, preset.name), self._read)
            return inspect_preset(preset, facts, columns)
        return Inspection(rows=self.detail(key, columns))
