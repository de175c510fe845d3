"""`ppo-tui clean`: removes what ended runs left, and what is over the limits of config.yaml."""

import sys
from typing import Annotated

import typer

from launcher.cli.output import Json, put_json, put_table, say
from launcher.core.errors import UserError
from launcher.core.format import gib


def register(app: typer.Typer) -> None:
    """Adds the command of this module."""
    app.command()(clean)


def clean(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be removed; remove nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    json: Json = False,
) -> None:
    """Remove processes and Ray folders of ended runs, and runs and checkpoints beyond `keep:` of config.yaml."""
    from launcher.runs.act import removal as leftovers
    from launcher.runs.act import removal as retention
    from launcher.settings import read_keep

    keep = read_keep()
    left, surplus = leftovers.leftovers(), retention.excess(keep) if keep else []
    rows = [("process" if each.process else "folder", each.run, each.size, each.name) for each in left]
    rows += [("checkpoint" if each.checkpoint else "run", each.run.id, each.bytes, str(each.path)) for each in surplus]
    for kind, run, size, name in rows if json else ():
        put_json({"kind": kind, "run": run, "bytes": size, "name": name, "removed": not dry_run})
    if not json:
        put_table([(kind, run, f"{gib(size)} GiB", name) for kind, run, size, name in rows])
    if not rows:
        say(
            "nothing to remove"
            + ("" if keep else "; config.yaml sets no limits (keep: 50 runs, 20 GiB of checkpoints)")
        )
    if dry_run or not rows:
        return
    if not yes:
        if not sys.stdin.isatty():
            raise UserError(
                "cleaning without a terminal requires a confirmation",
                "add --yes, or --dry-run to see what would be removed",
            )
        typer.confirm(f"Remove these {len(rows)}?", abort=True, err=True)
    retention.remove_excess(surplus)
    stuck = leftovers.remove_leftovers(left)
    for each in stuck:
        say(f"could not remove {each.name}")
    say(f"removed {len(rows) - len(stuck)} of {len(rows)}")
    if stuck:
        raise typer.Exit(1)
