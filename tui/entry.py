"""The script `ppo-tui`: the command line, with a function that opens the screen."""

from __future__ import annotations

import gc
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from launcher.cli.screen import ScreenRequest, Served
    from launcher.settings import Settings

# objects after which Python looks for garbage; at its own 700 that is a tenth of a start, which makes none
_GARBAGE = 150_000


def main() -> None:
    """Runs the command line. Textual is imported only when a command opens the screen."""
    gc.set_threshold(_GARBAGE)  # before other imports
    from launcher.cli.main import main as command_line

    command_line(open_screen, list_keys, check_theme, serve)


def open_screen(request: ScreenRequest) -> int:
    """Shows the screen until the user leaves it; returns the exit code.

    Raises UserError if no screen can be drawn: output that is not a terminal, `TERM=dumb`, an unknown theme.
    """
    from launcher.cli.screen import on_terminal
    from launcher.core.errors import UserError
    from launcher.settings import OUR_THEMES, over_ssh

    if not on_terminal() or os.environ.get("TERM", "dumb") == "dumb":
        raise UserError("the screen needs a terminal", "use `ppo-tui status RUN` or `ppo-tui list` for plain text")
    if request.settings.theme in (None, *OUR_THEMES) and os.environ.get("COLORTERM"):
        # our own colours are all among the 256, whose escapes are a third shorter over SSH
        os.environ.setdefault("TEXTUAL_COLOR_SYSTEM", "256")
    remote = over_ssh(os.environ)
    if remote:  # before Textual is imported, which reads it once
        os.environ.setdefault("TEXTUAL_DISABLE_KITTY_KEY", "1")
    from tui.app import PpoTui
    from tui.kit.terminal import CutDriver, ShellDriver, given_back, title_kept

    app = PpoTui(request, CutDriver if remote else ShellDriver)
    with given_back(), title_kept():
        app.run(mouse=request.settings.mouse)
    gc.freeze()  # otherwise Python would look through all objects again, for up to a second
    return app.return_code or 0


def serve(served: Served, say: Callable[[str], None]) -> int:
    """Shows the screen in browsers until ctrl+c. Raises UserError without the extra, and for a used port."""
    from launcher.core.errors import UserError

    try:
        from tui.browser.server import serve as run
    except ModuleNotFoundError as error:
        raise UserError(f"the package {error.name} is not installed", "run pip install 'ppo-tui[serve]'") from None
    return run(served, say)


def check_theme(name: str) -> None:
    """Raises UserError for an unknown theme."""
    from launcher.settings import OUR_THEMES

    if name not in OUR_THEMES:
        from tui.kit.theme import theme_name

        theme_name(name)


def list_keys(settings: Settings) -> tuple[list[dict[str, Any]], list[str]]:
    """Every key by id, sorted, with the user's keys applied, and the errors in the user's keys."""
    from tui.kit.keymap import checked, commands

    keymap, complaints = checked(settings.keys)
    return [found.as_json() for _, found in sorted(commands(keymap).items())], complaints
