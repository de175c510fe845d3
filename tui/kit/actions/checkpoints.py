"""What is done with the checkpoints of a run from a screen: resume it, score one, make a model of one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from launcher.core.errors import UserError
from launcher.record.layout import RunDir
from tui.kit.actions.background import in_background, narrator
from tui.kit.dialogs.ask import ask_and_do
from tui.kit.dialogs.choose import ConfirmScreen
from tui.kit.navigation import navigation

if TYPE_CHECKING:
    from textual.app import App

    from launcher.runs.watch.reader import RunReader
    from tui.kit.page import Page

T = TypeVar("T")


async def resume_run(page: Page[Any], run: RunDir) -> None:
    """Asks for the checkpoint and resumes the run from it. Runs in a worker."""
    from launcher.runs.act.resume import resume

    app = page.app

    def act(step: int, force: bool) -> RunDir:
        return resume(run, narrate=narrator(app), step=step, force=force)

    if await _from_checkpoint(app, run, f"Resume {run.id} from the checkpoint at step", act) is not None:
        navigation(app).show_run(run.path, page, read_only=False)


def begin_fork(page: Page[Any], reader: RunReader) -> None:
    """Forks the run that a page is about, in a worker of the page."""
    page.run_worker(fork_run(page, reader.dir), exclusive=True, group="start")


async def fork_run(page: Page[Any], run: RunDir) -> None:
    """Asks for the checkpoint and the changes, and opens the new run. Runs in a worker."""
    from launcher.runs.act.fork import fork, fork_step, fork_steps

    app, kept = page.app, [0, *fork_steps(run)]
    there = f"Checkpoints: {', '.join(map(str, kept[1:])) or 'none'}; 0 is the start of the run"
    try:
        step = fork_step(run)
    except UserError as error:  # there is none before the trouble
        step, there = 0, str(error).replace("--at ", "")

    def wrong(text: str) -> str | None:
        at, *settings = text.split() or [""]
        if not at.isdecimal() or int(at) not in kept:
            return f"Begin with the step of a checkpoint: {', '.join(map(str, kept))}"
        return next((f"{word}: use KEY=VALUE" for word in settings if "=" not in word), None)

    def act(text: str, force: bool) -> RunDir:
        at, *settings = text.split()
        return fork(run, settings, narrator(app), step=int(at), force=force)

    question = f"Fork {run.id}: step of the checkpoint, then KEY=VALUE changes"
    begun = await _unless_refused(app, act, lambda try_: ask_and_do(app, question, f"{step} ", try_, wrong, there))
    if begun is not None:
        navigation(app).show_run(begun.path, page, read_only=False)


async def evaluate_run(page: Page[Any], run: RunDir) -> None:
    """Asks for the checkpoint and opens the run that scores it on the test split. Runs in a worker."""
    from launcher.runs.act.use_checkpoint import evaluate

    app = page.app

    def act(step: int, force: bool) -> RunDir:
        return evaluate(run, (), step, narrator(app), force=force)

    begun = await _from_checkpoint(app, run, f"Evaluate {run.id} from the checkpoint at step", act)
    if begun is not None:
        navigation(app).show_run(begun.path, page, read_only=False)


async def merge_run(page: Page[Any], run: RunDir) -> None:
    """Asks for the checkpoint and writes it as a Hugging Face model. Runs in a worker."""
    from launcher.runs.act.use_checkpoint import MergeError, merge

    app = page.app
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
    return await _unless_refused(
        app, lambda text, force: act(int(text), force), lambda start: _ask_step(app, run, question, start)
    )


async def _unless_refused(
    app: App[Any],
    act: Callable[[str, bool], RunDir],
    ask: Callable[[Callable[[str], RunDir | None]], Awaitable[RunDir | None]],
) -> RunDir | None:
    """What `ask` has started with the text that was typed; before errors are forced it asks again."""
    from launcher.check.gate import Refused

    refused: list[tuple[str, Refused]] = []

    def start(text: str) -> RunDir | None:
        try:
            return act(text, False)
        except Refused as error:
            refused.append((text, error))
            return None

    begun = await ask(start)
    if begun is None and refused:
        typed, error = refused[-1]
        wrong = "\n\n".join(f"{each.id}: {each.message}" for each in error.findings if each.level == "error")
        confirm = ConfirmScreen("Start despite these errors?", wrong, "y  start", "n  cancel")
        if await app.push_screen_wait(confirm):
            try:
                return await asyncio.to_thread(act, typed, True)
            except (UserError, OSError) as failure:
                app.notify(str(failure), title="Not started", severity="error", markup=False, timeout=20)
    return begun


async def _ask_step(app: App[Any], run: RunDir, question: str, act: Callable[[str], T]) -> T | None:
    """Asks for the step of a complete checkpoint, the newest first; None when there is none or the user cancels."""
    from launcher.runs.watch.checkpoints import checkpoint, checkpoint_steps

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
