"""Opens the screens. It alone knows them all, and imports each when it is wanted: the first frame is quick."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textual.app import App
    from textual.screen import Screen

    from launcher.preset.draft import Draft
    from launcher.preset.files import LoadedPreset
    from launcher.record.layout import RunDir
    from launcher.runs.watch.reader import RunReader
    from tui.kit.charts.lens import Lens
    from tui.kit.page import Page


class Routes:
    """The `Navigation` of the application."""

    def __init__(self, app: App[Any]) -> None:
        self._app = app
        self.marked: list[Path] = []

    def show_run(self, run: Path, page: Page[Any] | None, *, read_only: bool) -> None:
        from tui.pages.dashboard.screen import DashboardScreen

        self._show(DashboardScreen(run, read_only=read_only), page, forward=True)

    def show_runs(self, page: Page[Any] | None, *, read_only: bool, current: Path | None = None) -> None:
        from tui.pages.runs.screen import RunsScreen

        self._show(RunsScreen(read_only=read_only, current=current), page, forward=False)

    def show_queue(self, *, read_only: bool) -> None:
        from tui.pages.queue.screen import QueueScreen

        self._app.push_screen(QueueScreen(read_only=read_only))

    def compare(self, runs: Sequence[Path]) -> None:
        from tui.pages.compare.screen import CompareScreen

        self._app.push_screen(CompareScreen(runs))

    def edit(self, draft: Draft, field: str | None, settings: Sequence[str], *, read_only: bool) -> None:
        from tui.pages.editor.screen import EditorScreen

        self._app.push_screen(EditorScreen(draft, field=field, read_only=read_only, settings=settings))

    def show_checks(self, reader: RunReader, *, read_only: bool) -> None:
        from tui.pages.checks.screen import ChecksScreen

        self._app.push_screen(ChecksScreen(reader, read_only=read_only))

    def show_check(self, reader: RunReader, rule: str, *, read_only: bool) -> None:
        from tui.pages.checks.detail import CheckDetailScreen

        self._app.push_screen(CheckDetailScreen(reader, rule, read_only=read_only))

    def show_diagnosis(self, reader: RunReader, *, read_only: bool) -> None:
        from tui.pages.diagnosis.screen import DiagnosisScreen

        self._app.push_screen(DiagnosisScreen(reader, read_only=read_only))

    def show_events(self, reader: RunReader, *, read_only: bool) -> None:
        from tui.pages.events.screen import EventsScreen

        self._app.push_screen(EventsScreen(reader, read_only=read_only))

    def show_log(self, reader: RunReader, line: int | None = None) -> None:
        from tui.pages.log.screen import LogScreen

        self._app.push_screen(LogScreen(reader, line))

    def show_metrics(self, reader: RunReader, lens: Lens) -> None:
        from tui.pages.metrics.screen import MetricsScreen

        self._app.push_screen(MetricsScreen(reader, lens))

    def show_samples(self, reader: RunReader) -> None:
        from tui.pages.samples.screen import SamplesScreen

        self._app.push_screen(SamplesScreen(reader))

    def show_gpus(self, reader: RunReader, lens: Lens, *, on_cpu: bool, read_only: bool) -> None:
        from tui.pages.gpu.screen import GpuScreen

        self._app.push_screen(GpuScreen(reader, lens, on_cpu=on_cpu, read_only=read_only))

    def show_trials(self, reader: RunReader, *, read_only: bool) -> None:
        from tui.pages.trials.screen import TrialsScreen

        self._app.push_screen(TrialsScreen(reader, read_only=read_only))

    async def launch(self, preset: str | LoadedPreset, after: RunDir | None = None) -> Path | list[str]:
        from tui.pages.launch.screen import LaunchScreen

        return await self._app.push_screen_wait(LaunchScreen(preset, after=after))

    def _show(self, screen: Screen[None], page: Page[Any] | None, *, forward: bool) -> None:
        """In the place of a page; the first one lies over Textual's own, which stays."""
        if page is not None:
            page.give_way(screen, forward=forward)
        else:
            self._app.push_screen(screen)
