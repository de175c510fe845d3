"""The runs of this machine, and below them the presets to start from."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen
from textual.widgets import Footer, Input

from launcher.errors import UserError
from launcher.record.layout import RunDir
from launcher.text import clean
from tui.actions.editing import edit_preset, edit_run
from tui.actions.runs import compare_marked, delete_run, export_run, toggle_mark
from tui.content.run_list import ORDERS, RunList, RunSummary, arranged, named
from tui.content.runs import about_preset, about_run, preset_row, run_heading, run_row
from tui.drawing.rows import Row, Span
from tui.keys import KEYS
from tui.navigation import navigation
from tui.widgets.fields import open_field
from tui.widgets.line_table import HEADING, RunTable
from tui.widgets.lines import Lines
from tui.widgets.painted import HIDDEN

if TYPE_CHECKING:
    from launcher.preset.files import Summary

POLL = 2.0  # seconds
_RUN, _PRESET = "run ", "preset "
_RUNS, _NONE, _GAP, _PRESETS = (HEADING + name for name in ("runs", "none", "gap", "presets"))


class RunsScreen(Screen[None]):
    """Enter opens a run, or the launch of a preset. It opens on the current run, else the last live one."""

    CSS_PATH = "pages.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*KEYS["runs"]]

    def __init__(self, *, read_only: bool, current: Path | None = None) -> None:
        super().__init__()
        self.read_only, self.current = read_only, current
        self.list = RunList()
        self.presets: dict[str, Summary] = {}
        self._read: list[tuple[Path, int]] = []  # their files and when these were changed
        self.order, self.words = ORDERS[0], ""
        self._shown: dict[str, RunSummary] = {}
        self._longest = 0  # cells of a name
        self._looking = True  # at the files; once at a time

    def compose(self) -> ComposeResult:
        yield RunTable(self._line, "")
        yield Lines()
        yield Input(id="runs-find", placeholder="name, state or verdict", compact=True, classes=HIDDEN)
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        self.app.title = self.app.TITLE or ""
        self.table.focus()
        self.run_worker(self._open(), exclusive=True)

    @property
    def table(self) -> RunTable:
        return self.query_one(RunTable)

    async def _open(self) -> None:
        """Runs first, then presets (pydantic and YAML), then scores (megabytes of steps)."""
        await asyncio.to_thread(self.list.refresh)
        self._fill()
        self._preselect()
        await self._read_presets()
        await self._read_scores()
        self._looking = False
        self.set_interval(POLL, self._poll)

    async def _read_presets(self) -> None:
        """Anew only when a file of theirs changed: reading them all takes a good part of a second."""
        files = await asyncio.to_thread(_preset_files)
        if files != self._read:
            self.presets = {found.name: found for found in await asyncio.to_thread(read_presets)}
            self._read = files
            self._fill()

    def on_screen_resume(self) -> None:
        self._poll()
        if self.presets:  # the editor may have written one
            self.run_worker(self._read_presets(), exclusive=True, group="presets")

    def _poll(self) -> None:
        if self.is_active and not self._looking:
            self.run_worker(self._look(), group="poll")

    async def _look(self) -> None:
        self._looking = True
        if await asyncio.to_thread(self.list.refresh):
            self._fill()
        await self._read_scores()
        self._looking = False

    async def _read_scores(self) -> None:
        unread = True
        while unread and self.query(RunTable):
            shown = [Path(key.removeprefix(_RUN)) for key in self.table.in_sight if key.startswith(_RUN)]
            unread = await asyncio.to_thread(self.list.read_scores, shown)
            if self.is_active and self.query(RunTable):  # below another screen it would repaint that one
                self.table.redraw()
        if self.order == "best score first":
            self._fill()

    def on_resize(self) -> None:
        self._show_more()

    def on_line_table_moved(self) -> None:
        self._show_more()

    def on_line_table_chosen(self, event: RunTable.Chosen) -> None:
        if event.key.startswith(_RUN):
            self._show_run(Path(event.key.removeprefix(_RUN)))
        elif self.read_only:
            self.notify("Watching only: this screen starts nothing.", severity="warning")
        else:
            name = event.key.removeprefix(_PRESET)
            self.run_worker(self._start(name), exclusive=True, group="start")

    def on_input_changed(self, event: Input.Changed) -> None:
        self.words = event.value
        self._fill()

    def on_input_submitted(self) -> None:
        self.query_one(Input).add_class(HIDDEN)
        self.table.focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "find":
            return not isinstance(self.focused, Input)  # there it is a letter
        return self.current is not None if action == "back" else True

    def action_back(self) -> None:
        if self.current is not None:
            self._show_run(self.current)

    def action_leave(self) -> None:
        field = self.query_one(Input)
        if field.value or self.focused is field:
            field.value = ""
            self.on_input_submitted()
        else:
            self.action_back()

    def action_find(self) -> None:
        open_field(self.query_one(Input))

    def action_edit(self) -> None:
        if self._chosen_run is not None:
            edit_run(self.app, RunDir(self._chosen_run).read_info(), read_only=self.read_only)
        elif self.table.cursor is not None:
            edit_preset(self.app, self.table.cursor.removeprefix(_PRESET), read_only=self.read_only)

    def action_order(self) -> None:
        self.order = ORDERS[(ORDERS.index(self.order) + 1) % len(ORDERS)]
        self._fill()

    def action_mark(self) -> None:
        if self._chosen_run is not None:
            toggle_mark(self.app, self._chosen_run)
            self.table.redraw()

    def action_compare(self) -> None:
        compare_marked(self.app, self._chosen_run)

    def action_delete(self) -> None:
        if self.read_only:
            self.notify("Watching only: this screen deletes nothing.", severity="warning")
        elif self._chosen_run is not None:
            self.run_worker(self._delete(RunDir(self._chosen_run)), exclusive=True, group="delete")
        else:
            self.action_preset("delete")

    def action_export(self) -> None:
        if self._chosen_run is not None:
            export = export_run(self.app, RunDir(self._chosen_run))
            self.run_worker(export, exclusive=True, group="export")

    def action_preset(self, what: str) -> None:
        if self.read_only:
            self.notify("Watching only: this screen changes no preset.", severity="warning")
        elif (key := self.table.cursor or "").startswith(_PRESET):
            self.run_worker(self._keep_preset(what, key.removeprefix(_PRESET)), exclusive=True, group="keep")

    def action_import(self) -> None:
        from tui.actions.presets import import_preset

        if self.read_only:
            self.notify("Watching only: this screen changes no preset.", severity="warning")
        else:
            self.run_worker(import_preset(self.app), exclusive=True, group="keep")

    async def _keep_preset(self, what: str, name: str) -> None:
        from tui.actions import presets

        act = {"copy": presets.copy_preset, "rename": presets.rename_preset, "delete": presets.delete_preset}
        await act[what](self.app, name)
        await self._read_presets()

    async def _delete(self, run: RunDir) -> None:
        if await delete_run(self.app, run):
            if run.path == self.current:
                self.current = None
                self.refresh_bindings()
            self._poll()

    def _show_run(self, run: Path) -> None:
        navigation(self.app).show_run(run, read_only=self.read_only)

    async def _start(self, preset: str) -> None:
        """Shows what the run comes to, and opens it once its supervisor lives."""
        outcome = await navigation(self.app).launch(preset)
        if isinstance(outcome, Path):
            self._show_run(outcome)

    @property
    def _chosen_run(self) -> Path | None:
        key = self.table.cursor or ""
        return Path(key.removeprefix(_RUN)) if key.startswith(_RUN) else None

    def _fill(self) -> None:
        if not self.query(RunTable):  # the screen closed while files were read
            return
        runs = arranged(self.list.runs, self.order, self.words)
        self._shown = {f"{_RUN}{run.path}": run for run in runs}
        self._longest = max((len(run.name) for run in runs), default=0)
        presets = [f"{_PRESET}{name}" for name in named(self.presets, self.words)]
        self.table.show([_RUNS, *(self._shown or [_NONE]), *([_GAP, _PRESETS] if presets else []), *presets])
        self._show_more()

    def _line(self, key: str, columns: int) -> Row:
        if run := self._shown.get(key):
            marked = navigation(self.app).marked
            mark = str(marked.index(run.path) + 1) if run.path in marked else ""
            return run_row(run, mark, columns, self._longest)
        if key.startswith(_PRESET):
            return preset_row(self.presets[key.removeprefix(_PRESET)])
        ordered = f" · {self.order}" if self.order != ORDERS[0] else ""
        found = f" · /{clean(self.words)}" if self.words else ""
        nothing = "   no run fits" if self.list.runs else "   none yet: choose a preset below"
        return {
            _RUNS: run_heading(columns, ordered + found, self._longest),
            _NONE: [(nothing, "dim")],
            _GAP: [],
            _PRESETS: [(" Start a new run", "title")],
        }[key]

    def _show_more(self) -> None:
        """A sentence or two about the chosen line, below the list."""
        key, spans = self.table.cursor or "", list[Span]()
        if run := self._shown.get(key):
            spans = about_run(run)
        elif preset := self.presets.get(key.removeprefix(_PRESET)):
            spans = about_preset(preset)
        width = max(self.size.width - 2, 8)
        self.query_one(Lines).show(
            [
                [(f" {line}", role)]
                for text, role in spans
                for line in wrap(clean(text), width, max_lines=2, placeholder=" …")
            ]
        )

    def _preselect(self) -> None:
        live = (run.path for run in self.list.runs if run.state.live)
        newest = self.list.runs[0].path if self.list.runs else None
        wanted = f"{_RUN}{self.current or next(live, newest)}"
        if wanted in self._shown:
            self.table.move_to(wanted)


def _preset_files() -> list[tuple[Path, int]]:
    from launcher.preset.files import available

    return [(path, path.stat().st_mtime_ns) for path in available().values() if path.exists()]


def read_presets() -> list[Summary]:
    from launcher.preset.files import available, summary

    found = []
    for name in available():
        with suppress(UserError):  # one that was renamed or deleted in this moment
            found.append(summary(name))
    return found
