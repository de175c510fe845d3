"""Importing from the list: a veRL command or a script becomes a preset, a log becomes a run."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui.actions.presets import import_preset
from tui.dialogs.ask import ask_and_do
from tui.dialogs.choose import ChooseScreen
from tui.navigation import navigation

if TYPE_CHECKING:
    from textual.app import App

    from launcher.record.layout import RunDir


async def import_anything(app: App[Any]) -> None:
    """Asks what to import. Runs in a worker."""
    details = "A script or a pasted veRL command becomes a preset; a console log or metrics.jsonl becomes a run."
    choice = await app.push_screen_wait(ChooseScreen("Import", details, [("p", "preset"), ("l", "log")]))
    if choice == "p":
        await import_preset(app)
    elif choice == "l":
        await _import_log(app)


async def _import_log(app: App[Any]) -> None:
    from launcher.run.actions.import_logs import import_logs

    def act(path: str) -> list[RunDir]:
        return import_logs([str(Path(path).expanduser())])

    note = "Console log or metrics.jsonl, plain or .gz"
    runs = await ask_and_do(app, "Path of the log", "", act, lambda text: None if text.strip() else note, note)
    if runs:
        await asyncio.sleep(0)  # the dialog is gone before its screen is replaced
        navigation(app).show_run(runs[0].path, read_only=False)
