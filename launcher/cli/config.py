"""`ppo-tui config`: the settings in config.yaml."""

import asyncio
from typing import Annotated

import typer

from launcher.cli.output import Json, fail, put_json, put_result, put_table, say
from launcher.cli.parsing import group
from launcher.core.errors import UserError
from launcher.core.paths import settings_file
from launcher.core.text import near_hint
from launcher.settings import in_force, read_alerts, read_assistant

app = group("Show settings and keys; test alerts and the assistant.")

_SENT = {True: "sent", False: "not sent", None: ""}


@app.command()
def show(ctx: typer.Context, json: Json = False) -> None:
    """Print every setting with its value and source."""
    rows = [("SETTING", "VALUE", "FROM")]
    for name, (value, place) in in_force(ctx.obj.asked).items():
        if json:
            put_json({"name": name, "value": value, "from": place})
        rows.append((name, value, place))
    if not json:
        put_table(rows)


@app.command()
def keys(ctx: typer.Context, json: Json = False) -> None:
    """List the keys of the screen by id. Change them under `keys:` in config.yaml."""
    listed, complaints = ctx.obj.keys()
    for complaint in complaints:
        say(f"warning: {complaint}")
    if json:
        for key in listed:
            put_json(key)
        return
    changed = [key["id"] for key in listed if key["keys"] != key["default"]]
    put_table(
        [(key["id"] + ("*" if key["id"] in changed else ""), ",".join(key["keys"]), key["what"]) for key in listed]
    )
    if changed:
        say("* changed in config.yaml")


@app.command()
def alerts(
    test: Annotated[bool, typer.Option("--test", help="Send a test message to the targets.")] = False,
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME", help="Targets to use [default: all].")] = None,
    json: Json = False,
) -> None:
    """List or test the targets of alerts in config.yaml."""
    from launcher.machine.targets import service

    known = read_alerts()
    for name in names or ():
        if name not in known:
            raise UserError(f"{name!r} is not a target in config.yaml", near_hint(name, list(known)))
    if not known:
        hint = "add a line such as alerts: {phone: ntfys://ntfy.sh/my-runs}"
        raise UserError(f"there is no target in {settings_file()}", hint)
    rows = [(name, service(known[name]), _sent(name, known[name]) if test else None) for name in names or known]
    if json:
        for name, kind, sent in rows:
            put_json({"name": name, "service": kind, "sent": sent})
    else:
        put_table([(name, kind, _SENT[sent]) for name, kind, sent in rows])
    if any(sent is False for _, _, sent in rows):
        raise typer.Exit(1)


@app.command()
def assistant(
    test: Annotated[bool, typer.Option("--test", help="Send 'hello' to the assistant and print its answer.")] = False,
    json: Json = False,
) -> None:
    """Show or test the assistant in config.yaml."""
    from launcher.report.assistant import ask

    found = read_assistant()

    async def answer() -> list[str]:
        return [line async for line in ask(found, "hello")]

    said = asyncio.run(answer()) if test else None
    put_result("\n".join((found.to, *(said or ()))), {"name": found.name, "to": found.to, "answer": said}, json)


def _sent(name: str, target: str) -> bool:
    from launcher.machine.targets import send

    try:
        send(name, target, "test of ppo-tui", "Alerts of runs arrive here.\nppo-tui list")
    except UserError as error:
        fail(error.message, error.hint)
        return False
    return True
