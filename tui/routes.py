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
    from tui.pages import Page


class Routes:
    """The `Navigation` of the application."""

    def __init__(self, app: App[Any]) -> None:
        self._app = app
        self.marked: list[Path] = []

    def show_run(self, run: Path, page: Page[Any] | None, *, read_only: bool) -> None:
        from tui.screens.dashboard import DashboardScreen

        self._show(DashboardScreen(run, read_only=read_only), page, forward=True)

    def show_runs(self, page: Page[Any] | None, *, read_only: bool, current: Path | None = None) -> None:
        from tui.screens.runs import RunsScreen

        self._show(RunsScreen(read_only=read_only, current=current), page, forward=False)

    def show_queue(self, *, read_only: bool) -> None:
        from tui.screens.queue import QueueScreen

        self._app.push_screen(QueueScreen(read_only=read_only))

    def compare(self, runs: Sequence[Path]) -> None:
        from tui.screens.compare import CompareScreen

        self._app.push_screen(CompareScreen(runs))

    def edit(self, draft: Draft, field: str | None, settings: Sequence[str], *, read_only: bool) -> None:
        from tui.screens.editor import EditorScreen

        self._app.push_screen(EditorScreen(draft, field=field, read_only=read_only, settings=settings))

    async def launch(self, preset: str | LoadedPreset, after: RunDir | None = None) -> Path | list[str]:
        from tui.screens.launch import LaunchScreen

        return await self._app.push_screen_wait(LaunchScreen(preset, after=after))

    def _show(self, screen: Screen[None], page: Page[Any] | None, *, forward: bool) -> None:
        """In the place of a page; the first one lies over Textual's own, which stays."""
        if page is not None:
            page.give_way(screen, forward=forward)
        else:
            self._app.push_screen(screen)
