"""Commands about presets."""

from pathlib import Path
from typing import Annotated

import typer

from launcher.commands.output import Json, Preset, Settings, put_json, put_table, say
from launcher.errors import UserError
from launcher.screen import on_terminal


def register(app: typer.Typer) -> None:
    """Adds the commands of this module."""
    for function in (presets, command, edit):
        app.command()(function)


def presets(json: Json = False) -> None:
    """List the presets, yours and the shipped ones. Names the one to start with here."""
    from launcher.preflight import machine
    from launcher.preset.files import available, summary
    from launcher.preset.recommend import recommend

    best, why = recommend([gpu.total for gpu in machine.here().gpus])
    rows = [("PRESET", "NEEDS", "FROM", "DESCRIPTION")]
    for name in available():
        found = summary(name)
        if json:
            put_json(
                {
                    "name": found.name,
                    "needs": found.needs,
                    "origin": found.origin,
                    "path": str(found.path),
                    "description": found.description,
                    "error": found.error,
                    "shadows": found.shadows,
                    "recommended": found.name == best,
                }
            )
        else:
            origin = "yours, over ours" if found.shadows else "yours" if found.origin == "user" else "shipped"
            rows.append((found.name, found.needs, origin, found.error or found.description))
    if not json:
        put_table(rows)
        say(f"to start with: {best} ({why})")


def command(preset: Preset, settings: Settings = None, json: Json = False) -> None:
    """Print the exact command of a run, for a shell."""
    from launcher.preset.shell import command_line
    from launcher.run.actions.start import preview

    # The pasted command has no run directory: it writes below the folder where it is run.
    launch = preview(preset, settings or [], Path.cwd() / "outputs" / Path(preset).name.removesuffix(".yaml"))
    if json:
        put_json({"argv": launch.argv, "env": launch.env})
    else:
        print(command_line(launch))


def edit(
    ctx: typer.Context,
    preset: Preset,
    field: Annotated[str | None, typer.Argument(metavar="KEY", help="A field or veRL key to go to.")] = None,
) -> None:
    """Edit a preset on the screen. Of a shipped one a preset of yours is made that lies over it."""
    from launcher.preset.drafts import open_draft
    from launcher.preset.field_values import field_named

    open_draft(preset)  # a mistake is told before the screen opens
    wanted = field_named(field) if field else None
    if not on_terminal():
        raise UserError(
            "the editor needs a terminal: 'ppo-tui presets' lists the files, and settings go after the preset"
        )
    raise typer.Exit(ctx.obj.open(preset=preset, field=wanted))
