"""Commands for logs of runs made elsewhere."""

from typing import Annotated

import typer

from launcher.commands.output import Json, put, put_json


def register(app: typer.Typer) -> None:
    """Adds the commands of this module."""
    app.command(name="import")(import_)


def import_(
    logs: Annotated[list[str], typer.Argument(metavar="LOG...", help="Console logs or metrics.jsonl, plain or .gz.")],
    json: Json = False,
) -> None:
    """Take in runs made elsewhere: attempts of one run where steps continue, else a run each."""
    from launcher.run.importer import import_logs

    for run in import_logs(logs):
        if json:
            put_json({"run": run.id, "dir": str(run.path)})
        else:
            put(run.id)
