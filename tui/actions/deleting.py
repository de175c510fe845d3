"""Deleting a run, after a question that says what it frees."""

import asyncio
from typing import Any

from textual.app import App

from launcher.errors import UserError
from launcher.format import gib
from launcher.record.layout import RunDir
from launcher.run.actions.delete import check, delete, size
from tui.actions.comparing import marks
from tui.screens.confirm import ConfirmScreen


async def delete_run(app: App[Any], run: RunDir) -> bool:
    """Whether it is gone; a run that still goes stays, with a sentence."""
    try:
        check(run)
        frees = await asyncio.to_thread(size, run)
        what = "Steps, log, samples, checkpoints and merged models are gone then"
        details = f"{run.path}\n\n{what}: {gib(frees)} GiB."
        question = ConfirmScreen(f"Delete {run.id}?", details, "y  delete it", "n  keep it")
        if not await app.push_screen_wait(question):
            return False
        await asyncio.to_thread(delete, run)
    except UserError as error:
        app.notify(str(error), title="Not deleted", severity="error", markup=False)
        return False
    if run.path in marks(app):
        marks(app).remove(run.path)
    app.notify(f"Deleted {run.id}.", markup=False)
    return True
