"""Opens the screen from the command line; the caller supplies it, so that nothing here imports it."""

import dataclasses
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from launcher.core.errors import UserError
from launcher.record.layout import RunDir
from launcher.record.state import current
from launcher.settings import Settings, in_environment, read


@dataclass(frozen=True, slots=True)
class ScreenRequest:
    """The screen to open, and its rights.

    `run`: path of a run directory; None opens the list of runs and presets. `read_only` disables every action that
    writes to a run. `compare`: paths of runs to compare. `preset` (a name or path) opens in the editor, at `field`.
    """

    run: str | None = None
    read_only: bool = False
    compare: tuple[str, ...] = ()
    preset: str | None = None
    field: str | None = None
    settings: Settings = dataclasses.field(default_factory=Settings)


@dataclass(frozen=True, slots=True)
class Served:
    """A served screen: the path `run` (None: the list), at most `tabs` browsers, `write`: browsers may change runs."""

    run: str | None
    host: str
    port: int
    write: bool
    tabs: int


OpenScreen = Callable[[ScreenRequest], int]
ServeScreen = Callable[[Served, Callable[[str], None]], int]
ListKeys = Callable[[Settings], tuple[list[dict[str, Any]], list[str]]]
CheckTheme = Callable[[str], object]
_NO_SCREEN = "this process cannot open the screen; use the command 'ppo-tui'"


def on_terminal() -> bool:
    """Whether input and output are a terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty()


class Screen:
    """Opens the screen by global options, environment and config.yaml."""

    def __init__(
        self,
        open_screen: OpenScreen | None = None,
        list_keys: ListKeys | None = None,
        check_theme: CheckTheme | None = None,
        serve: ServeScreen | None = None,
    ) -> None:
        self._open, self._list_keys, self._check_theme, self._serve = open_screen, list_keys, check_theme, serve
        self.asked: dict[str, bool | str | None] = {}

    def ask_for(self, asked: dict[str, bool | str | None]) -> None:
        """Takes in the global options. Raises UserError for an unknown theme."""
        theme = asked.get("theme")
        if isinstance(theme, str) and self._check_theme is not None:
            self._check_theme(theme)
        self.asked = asked

    def open(self, request: ScreenRequest | None = None) -> int:
        """Shows the screen with the user's settings; returns its exit code."""
        if self._open is None:
            raise UserError(_NO_SCREEN)
        return self._open(dataclasses.replace(request or ScreenRequest(), settings=read(self.asked)))

    def show(self, run: RunDir, *, read_only: bool) -> int:
        """Shows a run; returns the exit code, which is also 1 for a failed run."""
        code = self.open(ScreenRequest(str(run.path), read_only))
        return code or int(run.path.is_dir() and current(run).state in ("failed", "lost"))

    def serve(self, served: Served, say: Callable[[str], None]) -> int:
        """Serves the screen to browsers until ctrl+c; `say` receives the links. Returns the exit code."""
        if self._serve is None:
            raise UserError(_NO_SCREEN)
        os.environ.update(in_environment(self.asked))
        return self._serve(served, say)

    def keys(self) -> tuple[list[dict[str, Any]], list[str]]:
        """All keys of the screen, and the errors in config.yaml's keys."""
        if self._list_keys is None:
            raise UserError(_NO_SCREEN)
        return self._list_keys(read(self.asked))
