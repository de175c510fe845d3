"""The command that prints the keys of the screen."""

import typer

from launcher.cli.output import Json, put_json, put_table, say


def register(app: typer.Typer) -> None:
    """Adds the command of this module."""
    app.command()(keys)


def keys(ctx: typer.Context, json: Json = False) -> None:
    """List the keys of the screen by id. Change them under `keys:` in config.yaml."""
    found, complaints = ctx.obj.keys()
    for complaint in complaints:
        say(f"warning: {complaint}")
    if json:
        for key in found:
            put_json(key)
        return
    changed = [key["id"] for key in found if key["keys"] != key["default"]]
    put_table(
        [(key["id"] + ("*" if key["id"] in changed else ""), ",".join(key["keys"]), key["what"]) for key in found]
    )
    if changed:
        say("* changed in config.yaml")
