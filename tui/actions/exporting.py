"""Writing a run's figures into a file, from a screen."""

import asyncio
from typing import Any

from textual.app import App

from launcher.errors import UserError
from launcher.record.layout import RunDir
from tui.screens.ask import AskScreen
from tui.screens.confirm import ConfirmScreen

_FORMATS = "The ending is the format: .csv, .jsonl, .parquet, .svg, .tfevents, or a folder for TensorBoard"


async def export_run(app: App[Any], run: RunDir) -> None:
    """Asks for the file, whose ending is the format, and before one is replaced. Runs in a worker."""
    from launcher.export.formats import destination, export

    def wrong(to: str) -> str | None:
        try:
            destination(to.strip() or ".")
        except UserError as error:
            return _words(error, to)
        return None if to.strip() else _FORMATS

    question = f"Export {run.id} to"
    to = await app.push_screen_wait(AskScreen(question, f"{run.id}.csv", wrong, _FORMATS))
    if to is None:
        return
    to = to.strip()
    try:
        path, _ = destination(to)
        there = path.exists()
        asked = ConfirmScreen(f"Replace {path.name}?", str(path.absolute()), "y  replace it", "n  keep it")
        if there and not await app.push_screen_wait(asked):
            return
        path = await asyncio.to_thread(export, run, to, force=there)
    except UserError as error:
        app.notify(_words(error, to), title="Not exported", severity="error", markup=False)
        return
    app.notify(str(path.absolute()), title="Exported", markup=False)


def _words(error: UserError, to: str) -> str:
    """What the command says of its option, without the option."""
    return str(error).removeprefix(f"--to {to}: ")
