"""What is done with the checkpoints of a run from a screen: resume it, score one, make a model of one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from launcher.errors import UserError
from launcher.record.layout import RunDir
from tui.actions.background import in_background, narrator
from tui.dialogs.ask import ask_and_do
from tui.dialogs.confirm import ConfirmScreen
from tui.navigation import navigation

if TYPE_CHECKING:
    from textual.app import App

T = TypeVar("T")


async def resume_run(app: App[Any], run: RunDir) -> None:
    """Asks for the checkpoint and resumes the run from it. Runs in a worker."""
    from launcher.run.actions.resume import resume

    def act(step: int, force: bool) -> RunDir:
        return resume(run, narrate=narrator(app), step=step, force=force)

    if await _from_checkpoint(app, run, f"Resume {run.id} from the checkpoint at step", act) is not None:
        navigation(app).show_run(run.path, read_only=False)


async def evaluate_run(app: App[Any], run: RunDir) -> None:
    """Asks for the checkpoint and opens the run that scores it on the test split. Runs in a worker."""
    from launcher.run.actions.evaluate import evaluate

    def act(step: int, force: bool) -> RunDir:
        return evaluate(run, (), step, narrator(app), force=force)

    begun = await _from_checkpoint(app, run, f"Evaluate {run.id} from the checkpoint at step", act)
    if begun is not None:
        navigation(app).show_run(begun.path, read_only=False)


async def merge_run(app: App[Any], run: RunDir) -> None:
    """Asks for the checkpoint and writes it as a Hugging Face model. Runs in a worker."""
    from launcher.run.actions.merge import MergeError, merge

    step = await _ask_step(app, run, f"Merge {run.id} into a Hugging Face model from the checkpoint at step", int)
    if step is None:
        return
    try:
        folder = await in_background(lambda: merge(run, step, None, narrator(app)))
    except (UserError, MergeError, OSError) as error:
        app.notify(str(error), title="Not merged", severity="error", markup=False, timeout=20)
    else:
        app.notify(str(folder), title="Merged", markup=False, timeout=20)


async def _from_checkpoint(
    app: App[Any], run: RunDir, question: str, act: Callable[[int, bool], RunDir]
) -> RunDir | None:
    """Asks for a step and starts something from its checkpoint; asks again before errors are forced."""
    from launcher.preflight.gate import Refused

    refused: list[tuple[int, Refused]] = []

    def start(text: str) -> RunDir | None:
        try:
            return act(int(text), False)
        except Refused as error:
            refused.append((int(text), error))
            return None

    begun = await _ask_step(app, run, question, start)
    if begun is None and refused:
        step, error = refused[-1]
        wrong = "\n\n".join(f"{each.id}: {each.message}" for each in error.findings if each.level == "error")
        confirm = ConfirmScreen("Start despite these errors?", wrong, "y  start", "n  cancel")
        if await app.push_screen_wait(confirm):
            try:
                return await asyncio.to_thread(act, step, True)
            except (UserError, OSError) as failure:
                app.notify(str(failure), title="Not started", severity="error", markup=False, timeout=20)
    return begun


async def _ask_step(app: App[Any], run: RunDir, question: str, act: Callable[[str], T]) -> T | None:
    """Asks for the step of a complete checkpoint, the newest first; None when there is none or the user cancels."""
    from launcher.run.reading.checkpoints import checkpoint, checkpoint_steps

    try:
        newest, _ = checkpoint(run, None)
    except UserError as error:
        app.notify(str(error), severity="warning", markup=False)
        return None
    kept = checkpoint_steps(run)
    there = f"Checkpoints: {', '.join(map(str, kept))}"

    def wrong(text: str) -> str | None:
        return None if text.strip().isdecimal() and int(text) in kept else there

    return await ask_and_do(app, question, str(newest), act, wrong, there)
