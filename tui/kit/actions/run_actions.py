"""Actions on runs, for several screens: mark, compare, stop, try fixes, export, delete."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from launcher.core.errors import UserError, of_writing
from launcher.core.format import counted
from tui.kit.actions.background import reported
from tui.kit.dialogs.ask import AskScreen, ask_and_do
from tui.kit.dialogs.choose import confirmed
from tui.kit.navigation import navigation

if TYPE_CHECKING:
    from textual.app import App

    from launcher.compare.trial_runs import TrialPlan
    from launcher.record.layout import RunDir
    from launcher.runs.watch.reader import RunReader
    from tui.kit.page import Page

_FORMATS = "Format by extension: .csv, .jsonl, .parquet, .svg or .tfevents; a folder for TensorBoard"


def toggle_mark(app: App[Any], run: Path) -> None:
    """Marks or unmarks a run; shows a message if enough are marked."""
    from launcher.compare.comparison import MOST

    marked = navigation(app).marked
    if run in marked:
        marked.remove(run)
    elif len(marked) < MOST:
        marked.append(run)
    else:
        app.notify(f"At most {MOST} runs can be compared; press space to unmark one", severity="warning")


def compare_marked(app: App[Any], chosen: Path | None) -> None:
    """Compares the marked runs; a single one with the selected run."""
    from launcher.compare.comparison import FEWEST, MOST

    runs = [run for run in navigation(app).marked if run.is_dir()]
    if len(runs) < FEWEST and chosen is not None and chosen not in runs:
        runs.append(chosen)
    _compare(app, runs, f"Mark {FEWEST} to {MOST} runs with space, then press c to compare them")


def compare_with_others(app: App[Any], run: Path) -> None:
    """Compares a run with the marked ones; without any, a fork with its parent, others with the previous run."""
    from launcher.compare.comparison import MOST
    from launcher.record.layout import RunDir, all_runs
    from launcher.runs.watch.steps import parent_of

    others = [other for other in navigation(app).marked if other != run and other.is_dir()][: MOST - 1]
    if not others and (parent := parent_of(RunDir(run).read_info().parent)) is not None:
        others = [parent.path]
    elif not others:
        known = [each.path for each in all_runs()]
        others = known[known.index(run) + 1 :][:1] if run in known else []
    _compare(app, [run, *others], "No older run to compare with; mark runs with space in the list")


def _compare(app: App[Any], runs: Sequence[Path], too_few: str) -> None:
    from launcher.compare.comparison import FEWEST

    if len(runs) < FEWEST:
        app.notify(too_few)
    else:
        navigation(app).compare(runs)


async def stop_run(app: App[Any], reader: RunReader) -> None:
    """Asks with the expected losses, and stops the run after consent. Runs in a worker."""
    from launcher.runs.watch.checkpoints import latest_checkpoint

    run, step = reader.dir, reader.state.step
    kept, attempt = latest_checkpoint(run), run.last_attempt()
    trained = "No step finished yet." if step is None else f"Trained {counted(step, 'step')}."
    lost = f"The last checkpoint is at step {kept[0]}." if kept else "No checkpoint to resume from."
    details = f"{trained} {lost}\n\nveRL gets SIGTERM; after 6 seconds all its processes are killed."
    follow = attempt.read_launch().follow if attempt is not None else None
    if follow is not None:
        details = f"Its log is then no longer {'read' if follow.speed is None else 'played'}; no process is ended."
    if await confirmed(app, f"Stop {reader.name}?", details, "stop"):
        await _stop(app, [run])


async def begin_trials(app: App[Any], run: RunDir, rule: str | None = None) -> bool:
    """Shows the trials of a rule's fixes and their cost [default of `rule`: the failure, otherwise the first flag].

    Once confirmed, they run without the screen. Returns whether the user confirmed. Runs in a worker.
    """
    from launcher.compare.trial_runs import plan, start_apart

    def from_checkpoint_or_start() -> TrialPlan:
        try:
            return plan(run, rule)
        except UserError:  # no checkpoint before the flag; other errors are repeated
            return plan(run, rule, at=0)

    with reported(app, "No trials", "warning"):
        planned = await asyncio.to_thread(from_checkpoint_or_start)
        details = "\n".join([f"{planned.name}:", *planned.lines, "", f"Cost: {planned.cost}"])
        if await confirmed(app, "Start these trials?", details, "start"):
            await asyncio.to_thread(start_apart, planned)
            return True
    return False


async def begin_faster(app: App[Any], run: RunDir) -> bool:
    """Shows the setting that `try --faster` measures, and its runs; starts them as `begin_trials` does."""
    from launcher.compare.faster import plan
    from launcher.compare.trial_runs import try_apart

    with reported(app, "Nothing to measure", "warning"):
        planned = await asyncio.to_thread(plan, run)
        if await confirmed(app, "Measure this fix?", "\n".join(planned.lines), "start"):
            await asyncio.to_thread(try_apart, run, "--faster", "--checkpoint", str(planned.step))
            return True
    return False


async def note_run(page: Page[Any], run: RunDir) -> None:
    """Asks for a run's note and tags. Runs in a worker."""
    from launcher.record.control import refuse_later
    from launcher.record.note import RunNote, read_note

    def write(line: str) -> bool:
        refuse_later(run)
        try:
            RunNote.parse(line).write(run.note)
        except OSError as error:
            raise of_writing(run.note, error) from None
        return True

    hint = "Words starting with # are tags"
    await ask_and_do(page.app, f"Note for {run.id}", str(read_note(run.note)), write, lambda _: None, hint)


async def stop_runs(app: App[Any], runs: Sequence[RunDir]) -> None:
    """Asks once and stops several runs. Runs in a worker."""
    if await confirmed(app, f"Stop {_which(runs)}?", "\n".join(run.id for run in runs), "stop"):
        await _stop(app, runs)


async def _stop(app: App[Any], runs: Sequence[RunDir]) -> None:
    """Stops runs, and shows which will end, had already ended, or could not be stopped."""
    from launcher.record.state import ALIVE
    from launcher.runs.act.stop import stop

    asked = []
    for run in runs:
        said: list[str] = []
        try:
            state = await asyncio.to_thread(stop, run, by="screen", narrate=said.append)
        except (OSError, UserError) as error:  # a full disk, and no supervisor that could be signalled
            app.notify(f"{run.id} not stopped: {error}", severity="error", markup=False)
            continue
        if state in ALIVE:
            asked.append(run)
        else:
            app.notify("; ".join((f"{run.id} is {state}", *said)), markup=False)
    if asked:
        app.notify(f"Stop requested: {_which(asked)}", markup=False)


def _which(runs: Sequence[RunDir]) -> str:
    return runs[0].id if len(runs) == 1 else f"{counted(len(runs), 'run')}"


async def delete_runs(app: App[Any], runs: Sequence[RunDir]) -> None:
    """Asks once, with the freed space, and deletes ended runs; refuses if one is live. Runs in a worker."""
    from launcher.core.files import size
    from launcher.core.format import gib
    from launcher.runs.act.removal import check, delete

    marked = navigation(app).marked
    with reported(app, "Not deleted"):
        believed = [await asyncio.to_thread(check, run) for run in runs]
        frees = await asyncio.to_thread(lambda: sum(size(run.path) for run in runs))
        listed = "\n".join([*map(str, (run.path for run in runs)), *filter(None, believed)])
        details = f"{listed}\n\nThis removes steps, log, samples, checkpoints and merged models: {gib(frees)} GiB."
        deleted = runs if await confirmed(app, f"Delete {_which(runs)}?", details, "delete") else ()
        for run in deleted:
            with reported(app, "Not deleted"):
                await asyncio.to_thread(delete, run)
                marked[:] = [path for path in marked if path != run.path]
                app.notify(f"Deleted {run.id}", markup=False)


async def export_run(page: Page[Any], run: RunDir) -> None:
    """Asks for the file, whose extension sets the format, and again before replacing one. Runs in a worker."""
    from launcher.export.formats import destination, export

    def wrong(to: str) -> str | None:
        try:
            destination(to.strip() or ".")
        except UserError as error:
            return _without_option(error, to)
        return None if to.strip() else _FORMATS

    app, to, exported = page.app, f"{run.id}.csv", None
    while exported is None:
        reply = await app.push_screen_wait(AskScreen(f"Export {run.id} to", to, wrong, _FORMATS))
        if reply is None:
            return
        to = reply.strip()
        try:
            path, _ = destination(to)
            exists = path.exists()
            if not exists or await confirmed(app, f"Replace {path.name}?", str(path.absolute()), "replace"):
                exported = await asyncio.to_thread(export, run, to, force=exists)
        except UserError as error:
            app.notify(_without_option(error, to), title="Not exported", severity="error", markup=False)
    app.notify(str(exported.absolute()), title="Exported", markup=False)


async def report_runs(page: Page[Any], *runs: RunDir) -> None:
    """Asks for a report's file and writes it; asks again before replacing one. Runs in a worker."""
    from launcher.report.page import check, write

    name = f"{runs[0].id}.html" if len(runs) == 1 else "report.html"
    ask = (f"Report of {_which(runs)} to", name, "One HTML file for any browser")
    await _written(page.app, "Report", ask, check, lambda to: write(runs, to))


async def bundle_run(page: Page[Any], run: RunDir) -> None:
    """Asks for a bundle's file and writes it, as `report_runs`."""
    from launcher.report.bundle import check, write

    ask = (f"Bundle of {_which([run])} to", f"{run.id}-bundle.zip", "For a bug report; check it before you send it")
    await _written(page.app, "Bundle", ask, check, lambda to: write(run, to))


async def _written(
    app: App[Any], what: str, ask: tuple[str, str, str], check: Callable[[Path], None], write: Callable[[Path], object]
) -> None:
    """Writes a file with a typed name; `ask`: the question, a default name and a note."""

    def wrong(to: str) -> None:
        check(Path(to.strip()).expanduser())

    question, name, note = ask
    reply = await app.push_screen_wait(AskScreen(question, name, wrong, note))
    if reply is not None:
        with reported(app, f"No {what.lower()}"):
            to = Path(reply.strip()).expanduser().absolute()
            if not to.exists() or await confirmed(app, f"Replace {to.name}?", str(to), "replace"):
                await asyncio.to_thread(write, to)
                app.notify(str(to), title=what, markup=False)


def _without_option(error: UserError, to: str) -> str:
    """The error of `ppo-tui export` without the name of its option `-o`."""
    return str(error).removeprefix(f"--output {to}: ")
