"""Starting trials of a flag's fixes from a screen."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from launcher.core.errors import UserError
from launcher.record.layout import RunDir
from tui.kit.dialogs.confirm import ConfirmScreen

if TYPE_CHECKING:
    from textual.app import App

    from launcher.compare.trial_runs import Plan


async def begin_trials(app: App[Any], run: RunDir) -> None:
    """Shows what would be tried and what it takes; when confirmed, the trials go on without the screen.

    Runs in a worker.
    """
    from launcher.compare.trial_runs import plan, start_apart

    def from_checkpoint_or_start() -> Plan:
        try:
            return plan(run)
        except UserError:  # there is no checkpoint from before the flag; what else is wrong is said again
            return plan(run, at=0)

    try:
        planned = await asyncio.to_thread(from_checkpoint_or_start)
        details = "\n".join([f"{planned.name}:", *planned.lines, "", f"Cost: {planned.cost}"])
        if await app.push_screen_wait(ConfirmScreen("Try these fixes?", details, "y  start", "n  cancel")):
            await asyncio.to_thread(start_apart, planned)
    except (UserError, OSError) as error:
        app.notify(str(error), title="No trials", severity="warning", markup=False, timeout=20)
