"""Commands about presets."""

from pathlib import Path
from typing import Annotated

import typer

from launcher.cli.output import Json, Preset, Settings, put_json, put_table, say
from launcher.cli.screen import ScreenRequest, on_terminal
from launcher.core.errors import UserError


def presets(json: Json = False) -> None:
    """List your presets and the shipped ones. Recommends one for this machine."""
    from launcher.machine import capacity
    from launcher.preset.files import available, summary
    from launcher.preset.library import recommend

    best, why = recommend([gpu.total for gpu in capacity.here().gpus])
    rows, hiding = [("PRESET", "NEEDS", "FROM", "DESCRIPTION")], []
    for name in available():
        preset = summary(name)
        if json:
            names = ("name", "needs", "origin", "path", "description", "error", "shadows")
            shown = {name: getattr(preset, name) for name in names}
            put_json({**shown, "path": str(preset.path), "recommended": preset.name == best})
        else:
            origin = "yours, hides shipped" if preset.shadows else "yours" if preset.origin == "user" else "shipped"
            hiding += [preset.name] if preset.shadows else []
            rows.append((preset.name, preset.needs, origin, preset.error or preset.description))
    if not json:
        put_table(rows)
        for name in hiding:
            say(f"{name} runs your preset; to use the shipped one, rename yours: 'ppo-tui preset rename {name} NEW'")
        say(f"recommended for this machine: {best} ({why})")
        say("for another algorithm add recipe=NAME to any of them; 'ppo-tui recipes' lists the names")


def recipes(json: Json = False) -> None:
    """List the recipes, published settings of algorithms. Any preset takes one as recipe=NAME."""
    from launcher.preset import files, layers

    rows = [("RECIPE", "DESCRIPTION")]
    for name, path in files.recipes().items():
        about = files.recipe_about(name)
        rows.append((name, about))
        if json:
            sets = layers.nest(files.recipe_layer(name, str(path)))
            put_json({"name": name, "description": about, "path": str(path), "sets": sets})
    if not json:
        put_table(rows)


def command(preset: Preset, settings: Settings = None, json: Json = False) -> None:
    """Print the exact shell command of a run."""
    from launcher.preset.translate import command_line
    from launcher.runs.act.start import preview

    # The pasted command has no run directory: it writes below the folder where it is run.
    launch = preview(preset, settings or [], Path.cwd() / "outputs" / Path(preset).name.removesuffix(".yaml"))
    if json:
        put_json({"argv": launch.argv, "env": launch.env})
    else:
        print(command_line(launch))


def edit(
    ctx: typer.Context,
    preset: Preset,
    field: Annotated[str | None, typer.Argument(metavar="KEY", help="Field or veRL key to select.")] = None,
) -> None:
    """Edit a preset on the screen. Edits of a shipped preset are saved as your own preset."""
    from launcher.preset.drafts import open_draft
    from launcher.preset.field_values import field_named

    open_draft(preset)  # a mistake is told before the screen opens
    wanted = field_named(field) if field else None
    if not on_terminal():
        raise UserError(
            "the editor requires a terminal",
            "edit the files that 'ppo-tui presets --json' lists, or pass settings after the preset",
        )
    raise typer.Exit(ctx.obj.open(ScreenRequest(preset=preset, field=wanted)))
