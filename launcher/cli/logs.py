"""Commands for logs of runs made elsewhere."""

from typing import Annotated

import typer

from launcher.cli.launch import follow
from launcher.cli.output import Detach, Json, Plain, put, put_json
from launcher.core.errors import UserError


def register(app: typer.Typer) -> None:
    """Adds the commands of this module."""
    app.command(name="import")(import_)
    app.command()(replay)


def import_(
    logs: Annotated[list[str], typer.Argument(metavar="LOG", help="Console logs or metrics.jsonl, plain or .gz.")],
    json: Json = False,
) -> None:
    """Import runs made elsewhere. Logs with consecutive steps become attempts of one run."""
    from launcher.runs.act.import_logs import import_logs

    for run in import_logs(logs):
        if json:
            put_json({"run": run.id, "dir": str(run.path)})
        else:
            put(run.id)


def replay(
    ctx: typer.Context,
    log: Annotated[str, typer.Argument(metavar="LOG", help="A console log or a metrics.jsonl, plain or .gz.")],
    speed: Annotated[float, typer.Option(help="Speed relative to the original run.")] = 20.0,
    detach: Detach = False,
    plain: Plain = False,
    json: Json = False,
) -> None:
    """Replay a log as a live run."""
    from launcher.runs.act.import_logs import replay as play

    if not 0 < speed < float("inf"):
        raise UserError(f"--speed {speed} is not allowed", "use a number above 0, such as 20")
    follow(ctx, play(log, speed), detach, plain, json)
