"""Ways from one screen to another, so that screens and actions need not import each other; `tui.routes` opens them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

if TYPE_CHECKING:
    from textual.app import App

    from launcher.preset.draft import Draft
    from launcher.preset.files import LoadedPreset
    from launcher.record.layout import RunDir
    from launcher.runs.watch.reader import RunReader
    from tui.kit.charts.lens import Lens
    from tui.kit.page import Page


class RunView(NamedTuple):
    """A run on its pages: the data read so far, the view of all its charts, and whether it can be changed."""

    reader: RunReader
    lens: Lens
    read_only: bool


class Navigation(Protocol):
    """The screens by what they show. `marked` are the runs to be compared, in the order in which they were chosen."""

    marked: list[Path]

    def show_run(self, run: Path, page: Page[Any] | None, *, read_only: bool) -> None:
        """Opens the dashboard of a run instead of `page`; pages opened over that one meanwhile are closed first."""

    def show_runs(self, page: Page[Any] | None, *, read_only: bool, current: Path | None = None) -> None:
        """Opens the list of runs and presets instead of `page`, with the cursor on the run `current`."""

    def show_queue(self, *, read_only: bool) -> None:
        """Opens the queue over the current screen."""

    def compare(self, runs: Sequence[Path]) -> None:
        """Opens a comparison of runs over the current screen."""

    def edit(self, draft: Draft, field: str | None, settings: Sequence[str], *, read_only: bool) -> None:
        """Opens the form of a draft over the screen, at a field or veRL key, with KEY=VALUE as first changes."""

    def show(self, page: str, run: RunView, at: str | int | None = None) -> None:
        """Opens a page of a run (named by `tui.routes`) over the screen; `at` is the rule of a check or a log line."""

    def explain(self, topic: str) -> None:
        """Opens the reference text of a topic of `ppo-tui help` over the current screen."""

    async def launch(self, preset: str | LoadedPreset, after: RunDir | None = None) -> Path | list[str]:
        """Asks, then starts a preset, after the run `after` if one is named; only in a worker. Returns the directory of
        the new run, or, if it was not started, the KEY=VALUE that were changed for the launch.
        """


def navigation(app: App[Any]) -> Navigation:
    """The navigation of the application."""
    return cast(Navigation, app.routes)  # type: ignore[attr-defined]  # PpoTui has them
