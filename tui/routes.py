"""Opens the screens. Only this module names them all; it imports each on demand, so that the first frame is fast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textual.app import App
    from textual.screen import Screen

    from launcher.preset.draft import Draft
    from launcher.preset.files import LoadedPreset
    from launcher.record.layout import RunDir
    from tui.kit.navigation import RunView
    from tui.kit.page import Page

RUN_PAGES: Mapping[str, tuple[str, str]] = {  # module and class
    "case": ("case.screen", "CaseScreen"),
    "check": ("checks.check", "CheckDetailScreen"),
    "checks": ("checks.screen", "ChecksScreen"),
    "diagnosis": ("diagnosis.screen", "DiagnosisScreen"),
    "events": ("events.screen", "EventsScreen"),
    "log": ("log.screen", "LogScreen"),
    "machine": ("machine.screen", "MachineScreen"),
    "metrics": ("metrics.screen", "MetricsScreen"),
    "samples": ("samples.screen", "SamplesScreen"),
    "time": ("time.screen", "TimeScreen"),
    "trials": ("trials.screen", "TrialsScreen"),
}


class Routes:
    """The `Navigation` of the application."""

    def __init__(self, app: App[Any]) -> None:
        self._app = app
        self.marked: list[Path] = []

    def show_run(self, run: Path, page: Page[Any] | None, *, read_only: bool) -> None:
        from tui.pages.dashboard.screen import DashboardScreen, OpenedDashboard

        kind = OpenedDashboard if page is None or isinstance(page, OpenedDashboard) else DashboardScreen
        self._show(kind(run, read_only=read_only), page, forward=True)

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

    def show(self, page: str, run: RunView, at: str | int | None = None) -> None:
        module, name = RUN_PAGES[page]
        screen = getattr(import_module(f"tui.pages.{module}"), name)
        self._app.push_screen(screen(run) if at is None else screen(run, at))

    def explain(self, topic: str) -> None:
        from launcher.topics import text_of
        from tui.kit.actions.background import reported
        from tui.pages.help.screen import ReferenceScreen

        with reported(self._app):
            self._app.push_screen(ReferenceScreen(text_of(topic), topic))

    async def launch(self, preset: str | LoadedPreset, after: RunDir | None = None) -> Path | list[str]:
        from tui.pages.launch.screen import LaunchScreen

        return await self._app.push_screen_wait(LaunchScreen(preset, after=after))

    def _show(self, screen: Screen[None], page: Page[Any] | None, *, forward: bool) -> None:
        """Shows a page instead of another; the first one covers Textual's default screen, which stays."""
        if page is not None:
            page.give_way(screen, forward=forward)
        else:
            self._app.push_screen(screen)
