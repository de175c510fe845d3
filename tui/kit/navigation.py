"""From one screen to another: all that screens and actions know of each other. `tui.routes` opens the screens."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    from textual.app import App
    from textual.screen import Screen

    from launcher.preset.draft import Draft
    from launcher.preset.files import LoadedPreset
    from launcher.record.layout import RunDir
    from launcher.runs.watch.reader import RunReader
    from tui.kit.charts.lens import Lens
    from tui.kit.page import Page


class Navigation(Protocol):
    """The screens by what they show. `marked` are the runs to be compared, in the order in which they were chosen."""

    marked: list[Path]

    def show_run(self, run: Path, page: Page[Any] | None, *, read_only: bool) -> None:
        """The dashboard of a run, in the place of `page`; what was opened over that meanwhile is closed first."""

    def show_runs(self, page: Page[Any] | None, *, read_only: bool, current: Path | None = None) -> None:
        """Runs and presets, in the place of `page`; the cursor is on the run `current`."""

    def show_queue(self, *, read_only: bool) -> None:
        """The runs that wait for their turn, over the present screen."""

    def compare(self, runs: Sequence[Path]) -> None:
        """Runs side by side, over the present screen."""

    def edit(self, draft: Draft, field: str | None, settings: Sequence[str], *, read_only: bool) -> None:
        """The form of a draft, over the present screen: at a field or veRL key, KEY=VALUE as first changes."""

    def show_checks(self, reader: RunReader, *, read_only: bool) -> None:
        """All health checks of a run; this and the other pages of a run lie over the present screen."""

    def show_check(self, reader: RunReader, rule: str, *, read_only: bool) -> None:
        """One health check: its curve, limits, advice and history."""

    def show_diagnosis(self, reader: RunReader, *, read_only: bool) -> None:
        """Why the run failed."""

    def show_events(self, reader: RunReader, *, read_only: bool) -> None:
        """What happened, with times."""

    def show_log(self, reader: RunReader, line: int | None = None) -> None:
        """The console log, from a line of the newest attempt or at its end."""

    def show_metrics(self, reader: RunReader, lens: Lens) -> None:
        """All metrics."""

    def show_samples(self, reader: RunReader) -> None:
        """Responses of the model."""

    def show_gpus(self, reader: RunReader, lens: Lens, *, on_cpu: bool, read_only: bool) -> None:
        """Memory and processes of GPUs and host; `on_cpu`: the run wants no GPU, so none is missed."""

    def show_trials(self, reader: RunReader, *, read_only: bool) -> None:
        """Trials of fixes."""

    async def launch(self, preset: str | LoadedPreset, after: RunDir | None = None) -> Path | list[str]:
        """Starts a preset, after a question, out of the run `after`; only in a worker.

        Returns the directory of the new run; without one the KEY=VALUE that were changed for the launch.
        """


def navigation(app: App[Any]) -> Navigation:
    """That of the application."""
    return cast(Navigation, app.routes)  # type: ignore[attr-defined]  # PpoTui has them


def is_open(screen: Screen[Any]) -> bool:
    """Whether a screen still has its widgets. Work that runs beside the event loop asks before it shows its result."""
    return screen.app.is_running and screen in screen.app.screen_stack
