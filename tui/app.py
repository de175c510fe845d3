"""The application: themes, keys that work everywhere, and the current screen."""

import asyncio
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from rich.segment import Segment
from textual.actions import ActionParseResult, parse
from textual.app import App, SystemCommand
from textual.binding import Binding
from textual.color import Color
from textual.content import Content
from textual.dom import DOMNode
from textual.driver import Driver
from textual.events import DescendantFocus, Event, InputEvent, Key, Paste
from textual.filter import LineFilter
from textual.notifications import SeverityLevel
from textual.reactive import Reactive
from textual.screen import Screen
from textual.theme import Theme, ThemeProvider
from textual.types import CSSPathType

from launcher.cli.screen import ScreenRequest
from tui.kit import terminal
from tui.kit.actions.background import reported
from tui.kit.actions.editing import edit_preset
from tui.kit.drawing.glyphs import to_ascii
from tui.kit.key_order import KeyOrder
from tui.kit.keys import KEYS
from tui.kit.navigation import Navigation
from tui.kit.page import Offers, Page, is_open
from tui.kit.theme import OWN, TERMINAL, foreign_variables, theme_name
from tui.kit.widgets.log_tail import LogTail
from tui.kit.widgets.message_line import MessageLine, Said
from tui.kit.widgets.painted import ASCII_CLASS, ROLE_CLASSES
from tui.routes import Routes

_ERROR = 20.0  # seconds that an error stays
_OPENING = 0.5  # seconds that leaving waits for a screen which is just opening


class PpoTui(App[None]):
    """Shows runs. Reads run directories and sends requests; closing it changes nothing for a run."""

    TITLE = "ppo-tui"
    # all at once: for a screen with styles of its own Textual would parse everything again
    CSS_PATH: ClassVar[CSSPathType | None] = ["app.tcss", *sorted(Path(__file__).parent.rglob("*/*.tcss"))]
    COMPONENT_CLASSES = ROLE_CLASSES
    # The terminal's title. No widget shows it, so a change must not repaint all, as Textual's own would.
    title: Reactive[str] = Reactive("", repaint=False)
    BINDINGS = KEYS["app"]

    def __init__(self, request: ScreenRequest, driver: type[Driver] | None = None) -> None:
        """`driver` writes to the terminal; None for Textual's own."""
        colourless = "NO_COLOR" in os.environ
        # colours of the terminal's own can be left out; of all others Textual makes shades of grey
        super().__init__(driver_class=driver, ansi_color=True if colourless else None)
        self.request = request
        settings = request.settings
        self.routes: Navigation = Routes(self)
        self.animation_level = settings.animations
        for theme in OWN:
            self.register_theme(theme)
        asked = theme_name(settings.theme, settings.theme_place)
        # as `self.theme =` would, but before any style is parsed: that parses all of them twice
        self.set_reactive(App.theme, TERMINAL if colourless else asked)
        self.stylesheet.set_variables(self.get_css_variables())
        self.set_class(self.current_theme.dark, "-dark-mode")
        self.set_class(not self.current_theme.dark, "-light-mode")
        self.set_class(settings.ascii, ASCII_CLASS)
        self._inert, self._ascii = terminal.InertFilter(), AsciiFilter()
        self.said: Said | None = None
        self._keys = KeyOrder(self, super().on_event)
        self._leaving = False
        self._complaints: list[str] = []
        self._menu_key = ""  # the user's own key
        if settings.keys:
            from tui.kit.keymap import checked

            keymap, self._complaints = checked(settings.keys)
            self.set_keymap(keymap)
            self._menu_key = keymap.get("page.actions", "").partition(",")[0]

    def on_mount(self) -> None:
        self.watch(self, "title", self._tell_title)
        self.theme_changed_signal.subscribe(self, self._keep_theme)
        self.screen_change_signal.subscribe(self, lambda screen: self._show_message())
        if not self.is_headless:
            self.set_interval(1.0, self._check_terminal)
        read_only = self.request.read_only
        if self.request.preset is not None:
            edit_preset(self, self.request.preset, self.request.field, read_only=read_only)
        elif self.request.run is not None:
            self.routes.show_run(Path(self.request.run), None, read_only=read_only)
        elif self.request.compare:
            self.routes.compare([Path(run) for run in self.request.compare])
        else:
            self.routes.show_runs(None, read_only=read_only)
        for complaint in self._complaints:
            self.notify(complaint, title="Keys", severity="warning", markup=False, timeout=20)

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = True,
    ) -> None:
        """Shows one message at the bottom, replacing the last; Textual's toasts would cover the rows and pile up."""
        text = Content.from_markup(message).plain if markup else message
        stays = timeout or (_ERROR if severity == "error" else self.NOTIFICATION_TIMEOUT)
        said = Said(f"{title}: {text}" if title else text, severity, stays)
        self.call_later(self._say, said)

    def _say(self, said: Said) -> None:
        self.said = said
        self._show_message()

    def _show_message(self) -> None:
        """Shows the message on the current screen only."""
        for screen in self.screen_stack:
            screen.query(MessageLine).remove()
            for each in screen.query(LogTail):
                each.say(None)
        if self.said is None or self.said.left <= 0 or not self.screen.is_attached:  # such as at the program's end
            return
        if not self.screen.is_mounted:  # just pushed
            self.call_after_refresh(self._show_message)
        else:
            tail = next((tail for tail in self.screen.query(LogTail) if tail.size.height), None)
            if tail is not None:
                tail.say(self.said)
            else:
                self.screen.mount(MessageLine(self.said))

    async def on_event(self, event: Event) -> None:
        """Passes on keys and pasted texts in order. Every key removes the previous message."""
        if self._leaving and isinstance(event, InputEvent | Paste):
            return
        if not isinstance(event, Key | Paste) or event.is_forwarded:
            await super().on_event(event)
            return
        if isinstance(event, Key) and self.said is not None and not self.said.fresh:
            self.said = None
            self._show_message()
        if isinstance(self.screen, Page):
            self.screen.pressed()
        await self._keys.take(event)

    def on_key(self, event: Key) -> None:
        """Shows why a key does nothing here; Textual then handles its action."""
        if isinstance(self.screen, Page) and not self.screen.is_modal and event.key not in self.screen.active_bindings:
            from tui.kit.keymap import no_use

            if text := no_use(event.key, self.request.settings.keys):
                self.notify(text, markup=False)

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """Disables cursor blinking in read-only widgets: each blink sends bytes."""
        if self.animation_level == "none" and getattr(event.widget, "cursor_blink", False):
            event.widget.cursor_blink = False  # type: ignore[attr-defined]  # Input, TextArea

    def _keep_theme(self, theme: Theme) -> None:
        """Stores the theme chosen in the palette for the next start."""
        from launcher.settings import keep_theme

        with reported(self, "Cannot save the theme", "warning"):
            keep_theme(theme.name)

    def _tell_title(self, title: str) -> None:
        terminal.send(self, terminal.title(to_ascii(title) if self.request.settings.ascii else title))

    def _check_terminal(self) -> None:
        """Exits at once if the terminal is gone; an orderly exit would wait for it to accept bytes."""
        if terminal.hung_up():
            os._exit(129)  # a shell's code for SIGHUP

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Textual's filters and ours, which make text inert and, with `--ascii`, plain ASCII."""
        ours = [self._inert, self._ascii] if self.request.settings.ascii else [self._inert]
        return [*super().get_line_filters(), *ours]

    def get_key_display(self, binding: Binding) -> str:
        """The key as Textual shows it; for a menu action, the menu's current key and the letter."""
        letter = binding.key.partition(" ")[2]
        if self._menu_key and letter:
            binding = replace(binding, key=f"{self._menu_key} {letter}")
        return super().get_key_display(binding)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Our style variables for themes that are not ours."""
        return foreign_variables(self.current_theme)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """The command palette: each action of the screen once, with its key, and the choice of a theme."""
        listed = set[tuple[str, str]]()
        for node, binding, enabled, tooltip in screen.active_bindings.values():
            what = binding.description.capitalize(), tooltip or binding.description
            ours = binding.description and (binding.show or binding.tooltip) and not binding.system
            if enabled and ours and what not in listed:
                listed.add(what)  # several keys may do it
                title = f"{what[0]} ({self.get_key_display(binding)})"
                yield SystemCommand(title, what[1], partial(self.run_action, binding.action, node))
        yield SystemCommand("Theme", "Change the colors: dark, light, color-blind", self.action_change_theme)

    async def action_quit(self) -> None:
        """Quits, unless a screen must ask first, such as the editor with unsaved changes."""
        for screen in reversed(self.screen_stack):
            if (asks := getattr(screen, "asks_to_quit", None)) is not None and asks():
                return
        run = next(filter(None, (getattr(screen, "live_run", "") for screen in self.screen_stack)), "")
        farewell = f"{run} continues; show it with `ppo-tui attach {run}`, stop it with `ppo-tui stop {run}`"
        if not self.is_headless:
            terminal.stop_reading()
            terminal.leave_soon(0, farewell if run else "")
        await self._opened()
        self.exit(message=farewell if run else None)

    def action_help_quit(self) -> None:
        """Shows the key that quits; ctrl+c does not."""
        bindings = [each.binding for each in self.active_bindings.values()]
        for each in [each for each in bindings if each.action in ("app.quit", "quit")][:1]:
            self.notify(f"{self.get_key_display(each)} quits; runs continue", markup=False)

    def exit(self, *what: Any, **how: Any) -> None:
        """Exits, and opens no further pages, which would never get their widgets."""
        self._leaving = True
        terminal.stop_reading()
        super().exit(*what, **how)

    def action_command_palette(self) -> None:
        from tui.palette import PROVIDERS, Palette

        if not isinstance(self.screen, Palette):
            self.push_screen(Palette(PROVIDERS, id="--command-palette"))

    def search_themes(self) -> None:
        """The choice of a theme."""
        from tui.palette import Palette

        self.push_screen(Palette(providers=[ThemeProvider], placeholder="Search for themes…"))

    async def _opened(self) -> None:
        """Waits at most `_OPENING` seconds for the screen's widgets, which actions and the exit need."""
        end = time.monotonic() + _OPENING
        while not self.screen.is_mounted and time.monotonic() < end:
            await asyncio.sleep(0.01)

    async def run_action(
        self,
        action: "str | ActionParseResult",
        default_namespace: DOMNode | None = None,
        namespaces: Mapping[str, DOMNode] | None = None,
    ) -> bool:
        """Runs an action, or shows the page's reason against it."""
        name = (parse(action) if isinstance(action, str) else action)[1]
        if isinstance(default_namespace, Page):
            await self._opened()
            if not (default_namespace.is_mounted and is_open(default_namespace)):
                return True  # its widgets are removed one by one
        if isinstance(default_namespace, Offers) and (reason := default_namespace.refusal(name)) is not None:
            self.notify(reason[:1].upper() + reason[1:], severity="warning", markup=False)
            return True
        return await super().run_action(action, default_namespace, namespaces)

    def action_actions(self) -> None:
        """Opens the page's menu, and runs the chosen action."""
        from tui.kit.dialogs.actions import ActionsScreen, rare_actions

        actions = rare_actions(self.screen)

        async def act(chosen: str | None) -> None:
            for node, binding, _, _ in actions:
                if binding.id == chosen:
                    await self.run_action(binding.action, node)

        self.push_screen(ActionsScreen(actions), act)

    def action_reference(self) -> None:
        if (topic := self.screen.topic if isinstance(self.screen, Page) else None) is not None:
            self.routes.explain(topic)
        else:
            self.notify("Select a rule, finding, cause, field or metric first")

    def action_help(self) -> None:
        from tui.pages.help.screen import HelpScreen

        legends = self.screen.LEGENDS if isinstance(self.screen, Offers) else ()
        self.push_screen(HelpScreen(list(self.screen.active_bindings.values()), legends))


class AsciiFilter(LineFilter):
    """Applies `--ascii` to text that Textual itself draws: borders, scrollbars, messages, dialogs, the palette."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            segment if segment.control or segment.text.isascii() else segment._replace(text=to_ascii(segment.text))
            for segment in segments
        ]
