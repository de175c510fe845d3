"""Trials of a run's fixes, begun from its pages."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from tui.kit.actions.background import reported
from tui.kit.dialogs.choose import confirmed

if TYPE_CHECKING:
    from textual.app import App

    from launcher.compare.trial_runs import Plan
    from launcher.record.layout import RunDir


async def begin_trials(app: App[Any], run: RunDir, rule: str | None = None) -> bool:
    """Shows the trials of a rule's fixes and their cost; without a rule, those of the first flag.

    Once confirmed, they run without the screen. Returns whether the user confirmed. Runs in a worker.
    """
    from launcher.compare.trial_runs import plan, start_apart
    from launcher.core.errors import UserError

    def from_checkpoint_or_start() -> Plan:
        try:
            return plan(run, rule)
        except UserError:  # there is no checkpoint from before the flag; what else is wrong is said again
            return plan(run, rule, at=0)

    with reported(app, "No trials", "warning"):
        planned = await asyncio.to_thread(from_checkpoint_or_start)
        details = "\n".join([f"{planned.name}:", *planned.lines, "", f"Cost: {planned.cost}"])
        if await confirmed(app, "Try these fixes?", details, "start"):
            await asyncio.to_thread(start_apart, planned)
            return True
    return False
