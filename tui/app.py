"""The application: themes, keys that work everywhere, and which screen is up."""

import os
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen

from launcher.screen_request import ScreenRequest
from tui import terminal
from tui.glyphs import to_ascii
from tui.keys import is_ours
from tui.screens.dashboard import DashboardScreen
from tui.theme import OWN, theme_name
from tui.widgets.painted import ASCII_CLASS


class PpoTui(App[None]):
    """Shows runs. It reads run directories and sends requests; closing it changes nothing for a run."""

    TITLE = "ppo-tui"
    CSS_PATH = "app.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark", "help", "help", tooltip="Show every key and sign", key_display="?"),
        Binding("ctrl+z", "suspend_process", "suspend", tooltip="Back to the shell; fg returns", show=False),
    ]

    def __init__(self, request: ScreenRequest) -> None:
        super().__init__()
        self.request = request
        self.animation_level = "none"
        for theme in OWN:
            self.register_theme(theme)
        self.theme = theme_name(request.theme)
        self.set_class(request.ascii, ASCII_CLASS)

    def on_mount(self) -> None:
        self.watch(self, "title", self._tell_title)
        if not self.is_headless:
            self.set_interval(1.0, self._check_terminal)
        read_only = self.request.read_only
        if self.request.run is not None:
            self.push_screen(DashboardScreen(Path(self.request.run), read_only=read_only))
        else:
            from tui.screens.runs import RunsScreen

            self.push_screen(RunsScreen(read_only=read_only))

    def _tell_title(self, title: str) -> None:
        terminal.send(self, terminal.title(to_ascii(title) if self.request.ascii else title))

    def _check_terminal(self) -> None:
        """Ends at once when the terminal is gone: leaving in good order would wait for it to take bytes."""
        if terminal.hung_up():
            os._exit(129)  # as a shell shows a death by SIGHUP

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Our variables for themes that are not ours."""
        theme = self.current_theme
        if theme.ansi:
            dim, faint = "ansi_bright_black", "ansi_bright_black"
            others = ("ansi_magenta", "ansi_cyan", "ansi_default")
        elif theme.dark:
            dim, faint, others = "#8a8a8a", "#5f5f5f", ("#d787d7", "#5fd7af", "#eeeeee")
        else:
            dim, faint, others = "#6c6c6c", "#bcbcbc", ("#8700af", "#008787", "#303030")
        curves = {f"curve-{number}": colour for number, colour in enumerate(others, 2)}
        return {"dim": dim, "faint": faint, "curve": theme.primary, **curves}

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Every key of the screen as an entry of the command palette, and the choice of a theme."""
        for node, binding, enabled, tooltip in screen.active_bindings.values():
            if enabled and is_ours(binding):
                action = partial(self.run_action, binding.action, node)
                yield SystemCommand(binding.description.capitalize(), tooltip or binding.description, action)
        yield SystemCommand("Theme", "Change the colours", self.action_change_theme)

    def action_help(self) -> None:
        from tui.screens.help import HelpScreen

        self.push_screen(HelpScreen(list(self.screen.active_bindings.values())))
