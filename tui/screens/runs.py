"""All runs of this machine, newest first, and below them the presets to start from."""

import asyncio
from functools import partial
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Footer, OptionList
from textual.widgets.option_list import Option

from launcher.errors import UserError
from launcher.format import number
from launcher.text import clean
from tui.drawing.rows import Row, Span, crop, put
from tui.glyphs import ASCII
from tui.run_list import RunList, RunSummary
from tui.run_words import LEVELS, STATES, is_live, notice, state_words, uptime
from tui.screens.confirm import ConfirmScreen
from tui.widgets.header_line import SHORT_ID
from tui.widgets.lines import Lines
from tui.widgets.painted import ASCII_CLASS

if TYPE_CHECKING:
    from launcher.preset.files import Summary

POLL = 2.0  # seconds
_STYLES = {
    "dim": "$dim", "title": "bold", "live": "$curve bold", "ok": "$success", "notice": "$accent",
    "warn": "$warning bold", "critical": "$error bold",
}  # fmt: skip


class Choices(OptionList, inherit_bindings=False):
    """The list of runs and presets, with its keys told in the footer."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "enter",
            "select",
            "open / start",
            key_display="enter",
            tooltip="Open the run, or start the preset after a question",
        ),
        Binding("up,k", "cursor_up", "up", show=False),
        Binding("down,j", "cursor_down", "down", show=False),
        Binding("pageup", "page_up", "page up", show=False),
        Binding("pagedown", "page_down", "page down", show=False),
        Binding("home", "first", "first", show=False),
        Binding("end", "last", "last", show=False),
    ]


class RunsScreen(Screen[None]):
    """Enter opens a run, or asks and starts a preset. It opens on the current run, else the last live one."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,r", "back", "back", tooltip="Back to the run you came from", key_display="r"),
        Binding("q", "quit", "quit", tooltip="Close the screen; runs go on"),
    ]

    def __init__(self, *, read_only: bool, current: Path | None = None) -> None:
        super().__init__()
        self.read_only, self.current = read_only, current
        self.list = RunList()
        self.presets: list[Summary] = []

    def compose(self) -> ComposeResult:
        yield Choices(compact=True, markup=False)
        yield Lines()
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
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

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
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
            self.notify(f"Starting {preset} …", markup=False)
            run = await asyncio.to_thread(start, preset, (), partial(self.app.call_from_thread, self._tell))
        except UserError as error:
            self.notify(str(error), title="Not started", severity="error", markup=False, timeout=20)
        else:
            self._show_run(run.path)

    def _tell(self, text: str) -> None:
        self.notify(text, markup=False)

    def _fill(self) -> None:
        """Replaces the options and keeps the chosen one."""
        chosen = self.query_one(Choices)
        at = chosen.highlighted_option
        columns = max(self.size.width - 2, 1)
        options = [self._heading(_run_heading(), columns)]
        options += [self._option(f"run {run.path}", run_row(run), columns) for run in self.list.runs]
        if not self.list.runs:
            options.append(self._heading([("   none yet: choose a preset below", "dim")], columns))
        options += [self._heading([], columns), self._heading([(" Start a new run", "title")], columns)]
        options += [
            self._option(f"preset {preset.name}", preset_row(preset), columns) for preset in self.presets
        ]
        chosen.set_options(options)
        ids = [option.id for option in chosen.options]
        chosen.highlighted = ids.index(at.id) if at is not None and at.id in ids else None

    def _tell_more(self) -> None:
        """A sentence or two about the chosen line, below the list."""
        option = self.query_one(Choices).highlighted_option
        identity = option.id if option is not None else None
        told = next((_about_run(run) for run in self.list.runs if identity == f"run {run.path}"), None)
        told = told or next(
            (_about(preset) for preset in self.presets if identity == f"preset {preset.name}"), None
        )
        self.query_one(Lines).show(
            [
                [(f" {line}", role)]
                for text, role in told or []
                for line in wrap(clean(text), max(self.size.width - 2, 8), max_lines=2, placeholder=" …")
            ]
        )

    def _preselect(self) -> None:
        wanted = next((run.path for run in self.list.runs if is_live(run.state)), None)
        if self.current is not None:
            wanted = self.current
        chosen = self.query_one(Choices)
        ids = [option.id for option in chosen.options]
        chosen.highlighted = ids.index(f"run {wanted}") if f"run {wanted}" in ids else 1
        chosen.focus()

    def _option(self, identity: str, row: Row, columns: int) -> Option:
        return Option(self._content(row, columns), id=identity)

    def _heading(self, row: Row, columns: int) -> Option:
        return Option(self._content(row or [(" ", "text")], columns), disabled=True)

    def _content(self, row: Row, columns: int) -> Content:
        plain = self.app.has_class(ASCII_CLASS)
        return Content.assemble(
            *(
                (text.translate(ASCII) if plain else text, _STYLES.get(role, ""))
                for text, role in crop(row, columns)
            )
        )


def _run_heading() -> Row:
    row: Row = [(" Runs", "title")]
    for column, word in ((14, "run"), (40, "step"), (51, "reward"), (58, "checks"), (71, "time")):
        row = put(row, column, [(word, "dim")])
    return row


def run_row(run: RunSummary) -> Row:
    """`● running    toy-cpu · 7f3a    62/80    0.750    ▲ WARNING    3m`."""
    state = run.state
    name = str(state.get("state", "queued"))
    sign, role = STATES.get(name, ("?", "dim"))
    level_sign, verdict, level_role = LEVELS.get(str(state.get("verdict")), LEVELS["N-A"])
    step, total = state.get("step"), state.get("total")
    row: Row = [(f" {sign} {name}", role)]
    row = put(row, 14, [*crop([(run.name, "text")], 17), (f" · {run.id[:SHORT_ID]}", "dim")])
    row = put(row, 40, [(f"{'–' if step is None else step}/{total or '–'}", "text")])
    row = put(row, 51, [(number(run.reward), "text")])
    row = put(row, 58, [(f"{level_sign} {verdict}", level_role)])
    return put(row, 71, [(uptime(state, state.get("updated")).partition(" ")[2], "dim")])


def preset_row(preset: "Summary") -> Row:
    """`toy-cpu    no GPU    Real veRL PPO without a GPU`."""
    row: Row = [(f"   {preset.name}", "text")]
    if preset.error is not None:
        return put(row, 25, [(preset.error, "critical")])
    row = put(row, 25, crop([(preset.needs, "dim")], 24))
    return put(row, 51, [(preset.description, "text")])


def _about_run(run: RunSummary) -> list[Span]:
    """How the run ended, or what it does; and its folder."""
    said = "".join(text for text, _ in state_words(run.state))
    role, text = notice(run.state) or ("text", said)
    return [(text, role), (str(run.path), "dim")]


def _about(preset: "Summary") -> list[Span]:
    if preset.error is not None:
        return [(preset.error, "critical")]
    return [(preset.description, "text"), (f"needs {preset.needs or 'not said'}", "dim")]


def _presets() -> "list[Summary]":
    from launcher.preset.files import available, summary

    return [summary(name) for name in available()]


def _command(preset: str) -> str:
    """The command as it would run; the paths of a run that does not exist yet stand as RUN."""
    from launcher import verl_env
    from launcher.preset.files import load
    from launcher.preset.shell import command_line
    from launcher.preset.translate import RunFolders, build

    loaded = load(preset)
    env = verl_env.require(loaded.preset.python)
    if env.verl is None:
        raise UserError(f"veRL is not installed for {env.python}")
    names = ("checkpoints", "samples/rollout", "samples/validation", "metrics.jsonl", "hydra")
    folders = RunFolders(*(Path("/RUN") / name for name in names))
    command = command_line(build(loaded, version=env.verl, python=env.python, folders=folders))
    return f"ppo-tui run {preset}\n\nruns\n\n{command}"
