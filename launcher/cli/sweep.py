"""The command that queues a preset with every combination of some settings."""

import secrets
from itertools import zip_longest
from typing import Annotated

import typer

from launcher.cli.output import Json, Preset, put, put_json, say


def register(app: typer.Typer) -> None:
    """Adds the command of this module."""
    app.command()(sweep)


def sweep(
    preset: Preset,
    settings: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE[,VALUE]", help="Settings and their values, beside the preset's 'sweep:'."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, max=64, help="Runs of each combination, with data.seed 1, 2, ...")] = 1,
    tag: Annotated[str | None, typer.Option(metavar="TAG", help="Tag of the runs (default: a new one).")] = None,
    stop_behind: Annotated[
        bool, typer.Option("--stop-behind", help="End runs whose reward is behind the median of the others.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the runs, and queue none.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Start even if the preflight finds errors.")] = False,
    json: Json = False,
) -> None:
    """Queue a run for every combination of values and seeds, and print their ids. A CRITICAL check ends a run."""
    from launcher.runs.act import sweep as core

    tag = tag.removeprefix("#") if tag is not None else f"sweep-{secrets.token_hex(2)}"
    runs = core.arms(preset, settings or [], seeds, behind=tag if stop_behind else None)
    entries = [] if dry_run else core.sweep(preset, runs, tag, force=force)
    ids = [entry.id for entry in entries]
    for id, its in zip_longest(ids, runs):
        if json:
            put_json({"run": id, "tag": tag, "settings": its})
        else:
            put("  ".join([*([id] if id else []), " ".join(its)]))
    if dry_run:
        say(f"{len(runs)} runs would be queued; leave --dry-run out to queue them")
    else:
        say(f"queued {len(runs)} runs; 'ppo-tui queue' shows them, 'ppo-tui compare --tag {tag}' their results")
