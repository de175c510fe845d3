"""Actions on a run's checkpoints: resume it, score one, make a model of one."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from textual.app import App

from launcher.core.errors import UserError
from launcher.record.layout import RunDir
from launcher.runs.watch.reader import RunReader
from tui.kit.actions.background import in_background, narrator, reported
from tui.kit.actions.editing import chosen_offer
from tui.kit.actions.run_actions import begin_trials
from tui.kit.dialogs.ask import ask_and_do
from tui.kit.dialogs.choose import confirmed
from tui.kit.navigation import RunView, navigation
from tui.kit.page import Page

T = TypeVar("T")


async def resume_run(page: Page[Any], run: RunDir) -> None:
    """Asks for checkpoint and settings, and continues the run; step 0 starts a new one. Runs in a worker."""
    from launcher.record.state import current
    from launcher.runs.act.fork import fork
    from launcher.runs.act.resume import proposed, resume
    from launcher.runs.watch.checkpoints import checkpoints

    def act(step: int, settings: Sequence[str], force: bool) -> RunDir:
        begin = resume if step else fork
        return begin(run, settings, narrator(page.app), step=step, force=force)

    typed, note = proposed(run, current(run))
    await _from_step(page, f"Resume {run.id}", typed, note, [0, *checkpoints(run)], act)


async def start_again(page: Page[Any], run: RunDir) -> None:
    """Starts a new run with another run's settings, which the user may change first. Runs in a worker."""
    from launcher.runs.act.fork import fork

    def act(step: int, settings: Sequence[str], force: bool) -> RunDir:
        return fork(run, settings, narrator(page.app), step=step, force=force)

    note = "Step 0 is the beginning. Press enter to keep the settings."
    await _from_step(page, f"Start {run.id} again", "0 ", note, [0], act)


async def _from_step(
    page: Page[Any],
    verb: str,
    typed: str,
    note: str,
    kept: Sequence[int],
    act: Callable[[int, Sequence[str], bool], RunDir],
) -> None:
    """Asks for a checkpoint's step and KEY=VALUE settings, and opens the run that `act` starts."""

    def wrong(text: str) -> str | None:
        at, *settings = text.split() or [""]
        if not at.isdecimal() or int(at) not in kept:
            named = f"{at} is not the step of a checkpoint" if at else "No step"
            return f"{named}. Begin with one of {', '.join(map(str, kept))}"
        return next((f"{word} is not KEY=VALUE" for word in settings if "=" not in word), None)

    def begin(text: str, force: bool) -> RunDir:
        at, *settings = text.split()
        return act(int(at), settings, force)

    question = f"{verb}: step of the checkpoint, then KEY=VALUE changes"
    await _begin(page, begin, lambda start: ask_and_do(page.app, question, typed, start, wrong, note))


async def evaluate_run(page: Page[Any], run: RunDir) -> None:
    """Asks for the checkpoint, and opens the run that scores it on the test split. Runs in a worker."""
    from launcher.runs.act.use_checkpoint import evaluate

    def act(step: int, force: bool) -> RunDir:
        return evaluate(run, (), step, narrator(page.app), force=force)

    await _from_checkpoint(page, run, f"Evaluate {run.id} from the checkpoint at step", act)


async def _from_checkpoint(page: Page[Any], run: RunDir, question: str, act: Callable[[int, bool], RunDir]) -> None:
    """Asks for a step, starts something from its checkpoint, and opens the run."""
    await _begin(
        page, lambda text, force: act(int(text), force), lambda start: _ask_step(page.app, run, question, start)
    )


def begin_fork(page: Page[Any], reader: RunReader) -> None:
    """Forks the page's run, in a worker of the page."""
    page.in_worker(partial(fork_run, page, reader.dir), "start")


def try_entry(page: Page[Any], run: RunView, name: str) -> None:
    """Forks a run with the chosen fix, or the first one with settings; an isolating fix becomes a trial."""
    from launcher.preset.settle import settings_of

    offer = chosen_offer(run, name)
    if offer is None or not offer.edits:
        page.notify("This fix has no value to try; e opens the preset editor" if offer else "No fix to try")
    elif offer.fix.isolates and run.reader.state.failed:
        page.in_worker(partial(_isolate, page, run), "start")
    else:
        page.in_worker(partial(fork_run, page, run.reader.dir, settings_of(offer.edits)), "start")


async def _isolate(page: Page[Any], run: RunView) -> None:
    if await begin_trials(page.app, run.reader.dir):
        navigation(page.app).show("trials", run)


async def fork_run(page: Page[Any], run: RunDir, changes: Sequence[str] = ()) -> None:
    """Asks for the checkpoint and the changes, and opens the new run. Runs in a worker."""
    from launcher.core.files import size
    from launcher.runs.act.fork import fork
    from launcher.runs.watch.checkpoints import checkpoint_words
    from launcher.runs.watch.parent import Parent

    app, parent = page.app, Parent(run)
    kept = {step: size(folder) for step, folder in parent.checkpoints.items()}
    there = f"Checkpoints: {checkpoint_words(kept)}; 0 is the start of the run"
    try:
        step = parent.fork_step()
    except UserError as error:  # no checkpoint before the flag
        step, there = 0, str(error).replace("--checkpoint ", "")

    def act(at: int, settings: Sequence[str], force: bool) -> RunDir:
        return fork(run, settings, narrator(app), step=at, force=force)

    await _from_step(page, f"Fork {run.id}", f"{' '.join([str(step), *changes])} ", there, [0, *kept], act)


async def merge_run(page: Page[Any], run: RunDir) -> None:
    """Asks for the checkpoint, and writes it as a Hugging Face model. Runs in a worker."""
    from launcher.runs.act.use_checkpoint import MergeError, merge

    app = page.app
    step = await _ask_step(app, run, f"Merge {run.id} into a Hugging Face model from the checkpoint at step", int)
    if step is None:
        return
    with reported(app, "Not merged", also=MergeError):
        folder = await in_background(lambda: merge(run, step, None, narrator(app)))
        app.notify(str(folder), title="Merged", markup=False, timeout=20)


async def _begin(
    page: Page[Any],
    act: Callable[[str, bool], RunDir],
    ask: Callable[[Callable[[str], RunDir | None]], Awaitable[RunDir | None]],
) -> None:
    """Opens the run that `ask` starts with the typed text; asks again before ignoring errors of the preflight."""
    from launcher.check.gate import Refused

    app = page.app
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
        if await confirmed(app, "Start despite these errors?", wrong, "start"):
            with reported(app, "Not started"):
                begun = await asyncio.to_thread(act, typed, True)
    if begun is not None:
        navigation(app).show_run(begun.path, page, read_only=False)


async def _ask_step(app: App[Any], run: RunDir, question: str, act: Callable[[str], T]) -> T | None:
    """Asks for the step of a complete checkpoint [default: newest]; None without one, or if cancelled."""
    from launcher.runs.watch.checkpoints import checkpoint, checkpoint_sizes, checkpoint_words

    try:
        newest, _ = checkpoint(run, None)
    except UserError as error:
        app.notify(str(error), severity="warning", markup=False)
        return None
    kept = checkpoint_sizes(run)
    there = f"Checkpoints: {checkpoint_words(kept)}"

    def wrong(text: str) -> str | None:
        if text.strip().isdecimal() and int(text) in kept:
            return None
        return f"{text.strip() or 'This'} is not the step of a checkpoint. Use one of {', '.join(map(str, kept))}"

    return await ask_and_do(app, question, str(newest), act, wrong, there)
