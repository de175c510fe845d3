"""Importing from the list: a veRL command or a script becomes a preset, a log becomes a run."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

from launcher.core.errors import UserError
from tui.kit.dialogs.paste import PasteScreen
from tui.kit.navigation import navigation
from tui.pages.runs.preset_actions import import_preset, is_path, named_file, no_script

if TYPE_CHECKING:
    from tui.kit.page import Page

_LARGEST_SCRIPT = 1 << 20  # bytes
_SAID = (
    "Paste a veRL command or script, or type a path: a script (and its arguments) becomes a preset, "
    "a console log or metrics.jsonl a run. Nothing is executed."
)


async def import_anything(page: Page[Any]) -> None:
    """Asks until there is something to import, or the user cancels. Runs in a worker."""
    typed = ""
    while (
        text := await page.app.push_screen_wait(PasteScreen("Import", _SAID, _wrong, _names_file, typed))
    ) is not None:
        typed = text
        if (log := _log(text)) is None:
            await import_preset(page.app, text)
            return
        if await _import_log(page, log):
            return


def _wrong(text: str) -> str | None:
    return None if _log(text) is not None else no_script(text)


def _names_file(text: str) -> bool:
    return named_file(text) is not None or is_path(text)


def _log(text: str) -> Path | None:
    """The log that a text names: a file, and no script."""
    found = named_file(text)
    if found is None or found[1]:
        return None
    path = found[0]
    if path.stat().st_size <= _LARGEST_SCRIPT and path.suffix not in (".gz", ".jsonl", ".log"):
        return path if path.suffix != ".sh" and no_script(text) is not None else None
    return path


async def _import_log(page: Page[Any], log: Path) -> bool:
    """Makes a run of it and shows that one; whether it could."""
    from launcher.runs.act.import_logs import import_logs

    page.app.notify(f"Importing {log.name}", markup=False)
    try:
        runs = await asyncio.to_thread(import_logs, [str(log)])
    except (UserError, OSError) as error:
        page.app.notify(str(error), title="Not imported", severity="error", markup=False, timeout=20)
        return False
    navigation(page.app).show_run(runs[0].path, page, read_only=False)
    return True
