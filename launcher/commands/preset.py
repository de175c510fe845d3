"""Commands about presets."""

from pathlib import Path
from typing import Annotated

import typer

from launcher.commands.output import Json, put_json, put_table, say
from launcher.errors import UserError


def register(app: typer.Typer) -> None:
    """Adds the commands of this module."""
    for function in (presets, command, edit):
        app.command()(function)


def presets(json: Json = False) -> None:
    """List the presets: those that come with ppo-tui and yours."""
    from launcher.preset.files import available, summary

    rows = [("PRESET", "NEEDS", "FROM", "DESCRIPTION")]
    for name in available():
        found = summary(name)
        if json:
            put_json({
                "name": found.name, "needs": found.needs, "origin": found.origin, "path": str(found.path),
                "description": found.description, "error": found.error,
            })  # fmt: skip
        else:
            rows.append((found.name, found.needs, found.origin, found.error or found.description))
    if not json:
        put_table(rows)


def command(
    preset: Annotated[str, typer.Argument(help="A shipped preset, one of yours, or a file.")],
    settings: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Preset fields or veRL keys.")
    ] = None,
    json: Json = False,
) -> None:
    """Print the exact command of a run, ready to be pasted into a shell."""
    from launcher.preset.shell import command_line
    from launcher.run.launch import preview

    # The pasted command has no run directory: it writes below the folder where it is run.
    launch = preview(preset, settings or [], Path.cwd() / "outputs" / Path(preset).name.removesuffix(".yaml"))
    if json:
        put_json({"argv": launch.argv, "env": launch.env})
    else:
        print(command_line(launch))


def edit(
    preset: Annotated[str, typer.Argument(help="A shipped preset, one of yours, or a file.")],
    field: Annotated[
        str | None, typer.Argument(metavar="[KEY]", help="A field or veRL key to go to.")
    ] = None,
) -> None:
    """Open a preset in your editor; a shipped one as a preset of yours that lies over it."""
    import subprocess

    from launcher.preset.edit import editor, place
    from launcher.preset.files import load

    path, line = place(preset, field)
    words = editor()
    try:
        subprocess.run([*words, f"+{line}", str(path)], check=False)
    except OSError as error:
        raise UserError(f"the editor '{words[0]}' cannot be started: {error.strerror}") from None
    load(str(path))  # a mistake is told now, with its line
    say(f"{path} is in order")
