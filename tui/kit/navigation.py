"""From one screen to another: all that screens and actions know of each other. `tui.routes` opens the screens."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, cast

if TYPE_CHECKING:
    from textual.app import App
    from textual.screen import Screen

    from launcher.preset.draft import Draft
    from launcher.preset.files import LoadedPreset
    from launcher.record.layout import RunDir
    from launcher.runs.watch.reader import RunReader
    from tui.kit.charts.lens import Lens
    from tui.kit.page import Page


RunPageName = Literal["check", "checks", "diagnosis", "events", "gpu", "log", "metrics", "samples", "time", "trials"]


class RunView(NamedTuple):
    """A run as its pages show it: what was read of it, the view that their charts share, whether it can be changed."""

    reader: RunReader
    lens: Lens
    read_only: bool


class Navigation(Protocol):
    """The screens by what they show. `marked` are the runs to be compared, in the order in which they were chosen."""

    marked: list[Path]

    def show_run(self, run: Path, page: Page[Any] | None, *, read_only: bool) -> None:
        """The dashboard of a run, instead of `page`; what was opened over that meanwhile is closed first."""

    def show_runs(self, page: Page[Any] | None, *, read_only: bool, current: Path | None = None) -> None:
        """Runs and presets, instead of `page`; the cursor is on the run `current`."""

    def show_queue(self, *, read_only: bool) -> None:
        """The runs that wait for their turn, over the present screen."""

    def compare(self, runs: Sequence[Path]) -> None:
        """Runs side by side, over the present screen."""

    def edit(self, draft: Draft, field: str | None, settings: Sequence[str], *, read_only: bool) -> None:
        """The form of a draft, over the present screen: at a field or veRL key, KEY=VALUE as first changes."""

    def show(self, page: RunPageName, run: RunView, at: str | int | None = None) -> None:
        """A page of a run, over the present screen: `at` is the rule of a check, or a line of the log."""

    def explain(self, topic: str) -> None:
        """The reference text about a topic of `ppo-tui help`, over the present screen."""

    async def launch(self, preset: str | LoadedPreset, after: RunDir | None = None) -> Path | list[str]:
        """Starts a preset, after a question, out of the run `after`; only in a worker.

        Returns the directory of the new run; without one the KEY=VALUE that were changed for the launch.
        """


def navigation(app: App[Any]) -> Navigation:
    """That of the application."""
    return cast(Navigation, app.routes)  # type: ignore[attr-defined]  # PpoTui has them


def is_open(screen: Screen[Any]) -> bool:
    """Whether a screen still has its widgets. Work that runs in a thread asks before it shows its result."""
    return screen.app.is_running and screen in screen.app.screen_stack
