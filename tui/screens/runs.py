"""The runs of this machine, newest first, and below them the presets to start from."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Footer, OptionList

from launcher.errors import UserError
from launcher.text import clean
from tui.run_list import RunList
from tui.run_rows import about_preset, about_run, preset_row, run_heading, run_row
from tui.run_words import is_live
from tui.screens.confirm import ConfirmScreen
from tui.widgets.choices import Choices, Line
from tui.widgets.lines import Lines

if TYPE_CHECKING:
    from launcher.preset.files import Summary

POLL = 2.0  # seconds


class RunsScreen(Screen[None]):
    """Enter opens a run, or asks and starts a preset. It opens on the current run, else the last live one."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,r", "back", "back", id="runs.back", key_display="r",
                tooltip="Back to the run you came from"),
        Binding("q", "app.quit", "quit", id="runs.quit", tooltip="Close the screen; runs go on"),
    ]  # fmt: skip

    def __init__(self, *, read_only: bool, current: Path | None = None) -> None:
        super().__init__()
        self.read_only, self.current = read_only, current
        self.list = RunList()
        self.presets: list[Summary] = []

    def compose(self) -> ComposeResult:
        yield Choices()
        yield Lines()
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        self.app.title = self.app.TITLE or ""
        self.run_worker(self._open(), exclusive=True)

    async def _open(self) -> None:
        await asyncio.to_thread(self.list.refresh)
        self._fill()
        self._preselect()
        self.presets = await asyncio.to_thread(
            _presets
        )  # pydantic and YAML: the runs are on the screen before
        self._fill()
        self.set_interval(POLL, self._poll)

    def _poll(self) -> None:
        self.run_worker(self._look(), exclusive=True, group="poll")

    async def _look(self) -> None:
        if await asyncio.to_thread(self.list.refresh):
            self._fill()

    def on_resize(self) -> None:
        self._fill()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self.current is not None if action == "back" else True

    def action_back(self) -> None:
        if self.current is not None:
            self._show_run(self.current)

    def on_option_list_option_highlighted(self) -> None:
        self._tell_more()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        kind, _, name = str(event.option_id).partition(" ")
        if kind == "run":
            self._show_run(Path(name))
        elif self.read_only:
            self.notify("Watching only: this screen starts nothing.", severity="warning")
        else:
            self.run_worker(self._start(name), exclusive=True, group="start")

    def _show_run(self, run: Path) -> None:
        from tui.screens.dashboard import DashboardScreen

        self.app.switch_screen(DashboardScreen(run, read_only=self.read_only))

    async def _start(self, preset: str) -> None:
        """Shows the exact command, asks, and opens the run once its supervisor lives."""
        from launcher.run.launch import start

        try:
            command = await asyncio.to_thread(_command, preset)
            if not await self.app.push_screen_wait(ConfirmScreen(f"Start {preset}?", command, "y  start it")):
                return
            self.notify(f"Starting {preset} …", markup=False, timeout=20)
            run = await asyncio.to_thread(start, preset, (), partial(self.app.call_from_thread, self._tell))
        except UserError as error:
            self.notify(str(error), title="Not started", severity="error", markup=False, timeout=20)
        else:
            self._show_run(run.path)

    def _tell(self, text: str) -> None:
        self.notify(text, markup=False)

    def _fill(self) -> None:
        lines: list[Line] = [(None, run_heading())]
        lines += [(f"run {run.path}", run_row(run)) for run in self.list.runs]
        if not self.list.runs:
            lines.append((None, [("   none yet: choose a preset below", "dim")]))
        lines += [(None, []), (None, [(" Start a new run", "title")])]
        lines += [(f"preset {preset.name}", preset_row(preset)) for preset in self.presets]
        self.query_one(Choices).show(lines, max(self.size.width - 2, 1))
        self._tell_more()

    def _tell_more(self) -> None:
        """A sentence or two about the chosen line, below the list."""
        chosen = self.query_one(Choices).chosen
        told = [about_run(run) for run in self.list.runs if chosen == f"run {run.path}"]
        told += [about_preset(preset) for preset in self.presets if chosen == f"preset {preset.name}"]
        width = max(self.size.width - 2, 8)
        self.query_one(Lines).show([
            [(f" {line}", role)]
            for text, role in (told[0] if told else [])
            for line in wrap(clean(text), width, max_lines=2, placeholder=" …")
        ])  # fmt: skip

    def _preselect(self) -> None:
        live = (run.path for run in self.list.runs if is_live(run.state))
        newest = self.list.runs[0].path if self.list.runs else None
        self.query_one(Choices).choose(f"run {self.current or next(live, newest)}")
        self.query_one(Choices).focus()


def _presets() -> list[Summary]:
    from launcher.preset.files import available, summary

    return [summary(name) for name in available()]


def _command(preset: str) -> str:
    """The command as it would run; the paths of a run that does not exist yet stand below /RUN."""
    from launcher.preset.shell import command_line
    from launcher.run.launch import preview

    command = command_line(preview(preset, (), Path("/RUN")))
    return f"ppo-tui run {preset}\n\nruns\n\n{command}"
