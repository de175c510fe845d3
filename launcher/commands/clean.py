"""`ppo-tui clean`: removes what is over the limits of config.yaml."""

import sys
from typing import Annotated

import typer

from launcher.commands.output import Json, put, put_json, put_table, say
from launcher.errors import UserError
from launcher.format import gib


def register(app: typer.Typer) -> None:
    """Adds the command of this module."""
    app.command()(clean)


def clean(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be removed; remove nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    json: Json = False,
) -> None:
    """Remove the oldest runs and checkpoints beyond `keep:` of config.yaml."""
    from launcher.paths import settings_file
    from launcher.run.actions.retention import excess, remove
    from launcher.settings import read_keep

    keep = read_keep()
    if keep is None:
        raise UserError(f"nothing to clean: {settings_file()} has no 'keep: 50 runs, 20 GiB of checkpoints'")
    found = excess(keep)
    for each in found if json else ():
        put_json({"run": each.run.id, "path": str(each.path), "bytes": each.bytes, "removed": not dry_run})
    total = f"{gib(sum(each.bytes for each in found))} GiB"
    if not json:
        put_table([(gib(each.bytes), str(each.path)) for each in found])
        put(f"{len(found)} to remove, {total}" if found else "nothing is over the limits")
    if dry_run or not found:
        return
    if not yes:
        if not sys.stdin.isatty():
            raise UserError("cleaning without a terminal requires --yes; --dry-run shows what would be removed")
        typer.confirm(f"Remove {len(found)} runs and checkpoints ({total})?", abort=True, err=True)
    remove(found)
    say(f"removed {len(found)}, {total}")
