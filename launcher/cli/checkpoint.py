"""Commands that use what a run has saved."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from launcher.cli.launch import Force, Run, Step, refusals
from launcher.cli.output import Detach, Json, Settings, fail, put, put_json, put_table, say
from launcher.core.format import number
from launcher.record.layout import find


def register(app: typer.Typer) -> None:
    """Adds the commands of this module."""
    app.command()(merge)
    app.command(name="eval")(eval_)


def merge(
    run: Run,
    step: Step = None,
    to: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder to write (default: merged/global_step_N of the run).")
    ] = None,
    json: Json = False,
) -> None:
    """Convert a checkpoint into a Hugging Face model. Prints its folder."""
    from launcher.runs.act.use_checkpoint import MergeError
    from launcher.runs.act.use_checkpoint import merge as make

    try:
        folder = make(find(run), step, to, say)
    except MergeError as error:
        fail(str(error))
        raise typer.Exit(1) from None
    if json:
        put_json({"dir": str(folder)})
    else:
        put(str(folder))


def eval_(
    run: Run,
    settings: Settings = None,
    step: Step = None,
    detach: Detach = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Evaluate a checkpoint on the test split. This is a separate run without training."""
    from launcher.cli.plain import follow
    from launcher.metrics.records import jsonable
    from launcher.runs.act.use_checkpoint import SCORES, evaluate, scores

    with refusals():
        begun = evaluate(find(run), settings or [], step, say, force=force)
    if detach:
        if json:
            put_json({"run": begun.id, "dir": str(begun.path)})
        else:
            put(begun.id)
        return
    code = follow(begun, out=sys.stderr)
    found = scores(begun)
    if json:
        put_json({"run": begun.id, "scores": jsonable(found)})
    else:
        shown = {key: value for key, value in found.items() if key.startswith(SCORES[0])}
        put_table([(key, number(value)) for key, value in shown.items()])
        say(f"see {len(found) - len(shown)} more figures with 'ppo-tui metrics {begun.id} --json'")
    raise typer.Exit(code or (0 if found else 1))
