"""Ways between screens, so that screens and actions need not import each other; `tui.routes` opens them."""

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
    """A run on its pages: the data read so far, the shared view of its charts, and whether it can be changed."""

    reader: RunReader
    lens: Lens
    read_only: bool


class Navigation(Protocol):
    """The screens by content. `marked`: runs to compare, in the order of their choice."""

    marked: list[Path]

    def show_run(self, run: Path, page: Page[Any] | None, *, read_only: bool) -> None:
        """Opens a run's dashboard instead of `page`; first closes pages opened over `page` meanwhile."""

    def show_runs(self, page: Page[Any] | None, *, read_only: bool, current: Path | None = None) -> None:
        """Opens the list of runs and presets instead of `page`, with the cursor on the run `current`."""

    def show_queue(self, *, read_only: bool) -> None:
        """Opens the queue over the current screen."""

    def compare(self, runs: Sequence[Path]) -> None:
        """Opens a comparison of runs over the current screen."""

    def edit(self, draft: Draft, field: str | None, settings: Sequence[str], *, read_only: bool) -> None:
        """Opens a draft's form over the screen, at a field or veRL key, with KEY=VALUE as first changes."""

    def show(self, page: str, run: RunView, at: str | int | None = None) -> None:
        """Opens a page of a run (named in `tui.routes`) over the screen; `at`: a check's rule or a log line."""

    def explain(self, topic: str) -> None:
        """Opens the reference text of a `ppo-tui help` topic over the current screen."""

    async def launch(self, preset: str | LoadedPreset, after: RunDir | None = None) -> Path | list[str]:
        """Asks, then starts a preset, after the run `after` if given; only in a worker. Returns the new run's directory
        or, without a start, the KEY=VALUE changed for the launch.
        """


def navigation(app: App[Any]) -> Navigation:
    """The navigation of the application."""
    return cast(Navigation, app.routes)  # type: ignore[attr-defined]  # PpoTui has them
