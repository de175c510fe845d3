"""Commands that carry figures out of runs and put runs side by side."""

from typing import Annotated

import typer

from launcher.cli.output import Json, Keys, put, put_json, put_table, say
from launcher.cli.report import Source
from launcher.cli.screen import on_terminal
from launcher.core.errors import UserError


def register(app: typer.Typer) -> None:
    """Adds the commands of this module."""
    app.command()(compare)
    app.command()(export)


def export(
    source: Source,
    to: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help="File that ends in .csv, .jsonl, .parquet, .svg or .tfevents, or a folder for TensorBoard.",
        ),
    ],
    key: Keys = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Export the metrics of a run or a log to a file. The file extension sets the format."""
    from launcher.export.formats import export as write
    from launcher.runs.watch.source import resolve

    put(str(write(resolve(source), to, key or [], force=force)))


def compare(
    ctx: typer.Context,
    runs: Annotated[list[str] | None, typer.Argument(metavar="RUN", help="Two to eight runs.")] = None,
    tag: Annotated[
        str | None, typer.Option("--tag", metavar="TAG", help="Compare the runs with this tag: those of a sweep.")
    ] = None,
    plain: Annotated[bool, typer.Option("--plain", help="Print tables instead of opening the screen.")] = False,
    json: Json = False,
) -> None:
    """Compare runs side by side: what is better, with intervals, and the settings that differ."""
    from launcher.compare import comparison as core
    from launcher.compare import contrast
    from launcher.compare.comparison import groups
    from launcher.runs.watch.run_settings import differences as settings_that_differ

    if tag is not None and runs:
        raise UserError("compare expects runs or --tag, not both", "leave one of them out")
    found = core.tagged(tag) if tag is not None else core.find_runs(runs or [])
    if not (plain or json) and on_terminal() and len(found) <= core.MOST:
        raise typer.Exit(ctx.obj.open(compare=tuple(str(run.path) for run in found)))
    compared = [core.Compared(run) for run in found]
    for each in compared:
        each.poll()
    facts, infos = [each.facts() for each in compared], [each.info for each in compared]
    differences, of_run = settings_that_differ(infos), [group + 1 for group in groups(infos)]
    judged = contrast.contrasts(compared)
    assumed = contrast.assumptions(compared, judged)
    if json:
        changed = [{"key": entry.key, "values": entry.values} for entry in differences]
        against = [each.to_json() for each in judged]
        told = {"groups": of_run, "contrasts": against, "assumptions": assumed}
        put_json({"runs": [fact.to_json() for fact in facts], "differences": changed, **told})
        return
    rows = core.fact_rows(facts)
    by_group = tag is not None
    put_table(contrast.arm_rows(compared) if by_group else [*rows, ["group", *map(str, of_run)]])
    if judged:
        put("")
        put_table(contrast.contrast_rows(judged))
    elif repeated := contrast.spread_rows(compared):
        put("")
        put_table(repeated)
    for line in assumed:
        put(line)
    for note in core.notes(compared):
        say(note)
    if by_group:
        return
    if differences:
        put("")
        put_table(core.difference_rows(found, differences))
    elif all(info.preset is not None for info in infos):
        say("the runs have the same settings and versions")
