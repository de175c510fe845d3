"""Commands on existing runs: exports, bundles, evaluations, removal."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from launcher.cli.checking import refusals
from launcher.cli.output import (
    Checkpoint,
    Detach,
    Force,
    Json,
    Keys,
    Run,
    Settings,
    Source,
    Yes,
    confirm,
    fail,
    find,
    put,
    put_json,
    put_result,
    put_run,
    put_table,
    resolved,
    say,
)
from launcher.core.errors import UserError
from launcher.core.format import amount, counted, number
from launcher.record import layout

if TYPE_CHECKING:
    from launcher.compare.paired import Paired
    from launcher.record.layout import RunDir

_SHOWN, _WIDTH = 5, 60  # prompts of each kind, and columns of one


def export(
    source: Source,
    key: Keys = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
    model: Annotated[
        bool, typer.Option("--model", help="Write a checkpoint as a Hugging Face model, not metrics.")
    ] = False,
    checkpoint: Checkpoint = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="File or folder to write [--model: merged/global_step_N]."),
    ] = None,
    json: Json = False,
) -> None:
    """Export metrics to a file, or a checkpoint as a model. The file extension sets the format.

    Formats: .csv, .jsonl, .parquet, .svg, .tfevents, and a folder for TensorBoard. A model is written to
    merged/global_step_N of the run unless --output is set.
    """
    from launcher.export.formats import export as write
    from launcher.runs.act.use_checkpoint import MergeError, merge

    if not model:
        if checkpoint is not None:
            raise UserError("--checkpoint is an option of --model", "add --model, or leave it out")
        if output is None:
            raise UserError("missing --output", "use 'ppo-tui export SOURCE --output FILE'")
        file = str(write(resolved(source), output, key or [], force=overwrite))
        put_result(file, {"file": file}, json)
        return
    try:
        folder = merge(find(source), checkpoint, Path(output) if output else None, say)
    except MergeError as error:
        fail(str(error))
        raise typer.Exit(1) from None
    put_result(str(folder), {"dir": str(folder)}, json)


def bundle(
    run: Run,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE.zip", help="File to write [default: RUN-bundle.zip].")
    ] = None,
    answers: Annotated[bool, typer.Option("--answers", help="Include an assistant's answers about the run.")] = False,
    json: Json = False,
) -> None:
    """Pack logs, versions and stacks of a run for a bug report. Secrets and names of people and hosts are replaced."""
    from launcher.report.bundle import write

    target = find(run)
    written = str(write(target, output or Path(f"{target.id}-bundle.zip"), answers=answers))
    put_result(written, {"run": target.id, "file": written}, json)


def eval_(
    run: Run,
    settings: Settings = None,
    checkpoint: Checkpoint = None,
    base: Annotated[
        bool, typer.Option("--base", help="Also evaluate the untrained model; compare each prompt.")
    ] = False,
    detach: Detach = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Evaluate a checkpoint on the test split. This is a separate run without training."""
    from launcher.cli.plain import follow
    from launcher.metrics.records import jsonable
    from launcher.runs.act.use_checkpoint import SCORES, evaluate, scores

    if base and detach:
        raise UserError("--base waits for both evaluations", "leave out --detach")
    target = find(run)  # before a newer run exists: it may be 'last'
    with refusals():
        begun = evaluate(target, settings or [], checkpoint, say, force=force)
    if detach:
        put_run(begun, json)
        return
    code = follow(begun, out=sys.stderr)
    values = scores(begun)
    gained = _gained(target, begun, settings or [], force=force) if base and not code and values else None
    if json:
        found = {} if gained is None else {"base": gained.to_json()}
        put_json({"run": begun.id, "scores": jsonable(values), **found})
    else:
        shown = {key: value for key, value in values.items() if key.startswith(SCORES[0])}
        put_table([(key, number(value)) for key, value in shown.items()])
        say(f"see {counted(len(values) - len(shown), 'more value')} with 'ppo-tui metrics {begun.id} --json'")
        if gained is not None:
            _put_gained(gained)
    raise typer.Exit(code or (0 if values else 1))


def _gained(run: RunDir, trained: RunDir, settings: list[str], *, force: bool) -> Paired:
    """Compares the trained model with the initial one, by the responses of a validation before step 1."""
    from launcher.cli.plain import follow
    from launcher.compare.paired import last_validation, paired
    from launcher.runs.act.use_checkpoint import evaluate

    before = None if settings else last_validation(run, 0)
    if before is None:
        with refusals():
            base = evaluate(run, settings, None, say, force=force, base=True)
        if code := follow(base, out=sys.stderr):
            raise typer.Exit(code)
        before = last_validation(base)
    after = last_validation(trained)
    if before is None or after is None:
        raise UserError("an evaluation left no responses", "read its log with ppo-tui attach")
    return paired(before, after)


def _put_gained(found: Paired) -> None:
    put_table(
        [
            ("before training", number(found.before)),
            ("after training", number(found.after)),
            ("difference", f"{number(found.after - found.before)} ({number(found.low)} to {number(found.high)}, 95 %)"),
            ("prompts", f"{found.prompts}, {len(found.gained)} gained, {len(found.lost)} lost"),
        ]
    )
    for word, changes in (("gained", found.gained), ("lost", found.lost)):
        for each in changes[:_SHOWN]:
            put(f"{word}: {number(each.before)} to {number(each.after)}  {_one_line(found.question(each))}")
        if len(changes) > _SHOWN:
            say(f"see all {counted(len(changes), 'prompt')} {word} with --json")


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1]}…"


def delete(run: Run, yes: Yes = False, json: Json = False) -> None:
    """Delete a run and its checkpoints."""
    from launcher.runs.act.removal import check
    from launcher.runs.act.removal import delete as remove

    target = layout.find(run)  # without a note: of several runs of that name none is meant
    if believed := check(target):
        say(believed)
    confirm(f"Delete run {target.id} ({target.path}) and its checkpoints?", yes, f"deleting run {target.id}")
    remove(target)
    say(f"deleted run {target.id}")
    if json:
        put_run(target, json)


def clean(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be removed; remove nothing.")] = False,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Remove leftovers of ended runs, and runs over `keep:` limits.

    Leftovers are processes, Ray folders, shared memory and sockets. `keep:` in config.yaml limits runs and checkpoints.
    """
    from launcher.runs.act.removal import excess, leftovers, remove
    from launcher.settings import read_keep

    keep = read_keep()
    found = leftovers() + (excess(keep) if keep else [])
    rows = [(each.kind, each.run.id, amount(each.bytes), each.name) for each in found]
    if not json:
        put_table(rows)
    if not found:
        unlimited = "" if keep else "; config.yaml sets no limits (keep: 50 runs, 20 GiB of checkpoints)"
        say(f"nothing to remove{unlimited}")
        return
    for row in rows if json and not yes and not dry_run else ():
        say("  ".join(row))  # the subject of the question
    if not dry_run:
        confirm(f"Remove these {len(found)}?", yes, "cleaning", "add --yes, or --dry-run to see what would be removed")
    stay = dict.fromkeys(found, "") if dry_run else remove(found)
    for each in found if json else ():
        words = {"kind": each.kind, "run": each.run.id, "bytes": each.bytes, "name": each.name}
        put_json({**words, "removed": each not in stay})
    if dry_run:
        return
    for each, reason in stay.items():
        say(f"kept {each.name}: {reason}")
    say(f"removed {len(found) - len(stay)} of {len(found)}")
    if stay:
        raise typer.Exit(1)
