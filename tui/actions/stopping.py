"""Stopping a run from a screen: never without asking."""

import asyncio
from typing import Any

from textual.app import App

from launcher.run.reading.reader import RunReader
from tui.screens.confirm import ConfirmScreen


async def ask_to_stop(app: App[Any], reader: RunReader) -> None:
    """Asks, telling what would be lost, and stops the run when the answer is yes. Runs in a worker."""
    from launcher.run.actions.start import stop
    from launcher.run.reading.checkpoints import latest_checkpoint

    run, step = reader.dir, reader.state.get("step")
    kept = latest_checkpoint(run.checkpoints)
    trained = "No step was finished yet." if step is None else f"{step} steps were trained."
    lost = f"The last checkpoint is of step {kept[0]}." if kept else "There is no checkpoint to resume from."
    details = (
        f"{trained} {lost}\n\n"
        "veRL is asked to end, and killed with all its processes when it takes longer than 6 seconds."
    )
    question = ConfirmScreen(f"Stop {reader.name}?", details, "y  stop it", "n  leave it running")
    if await app.push_screen_wait(question):
        try:
            await asyncio.to_thread(stop, run, by="screen")
        except OSError as error:  # a full disk, and no supervisor that could be signalled
            app.notify(f"not stopped: {error}", severity="error", markup=False)
        else:
            app.notify("Asked the run to stop.")
