"""`ppo-tui preset`: shipped presets and recipes, and the user's own."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from launcher.cli.output import Json, Preset, Settings, Yes, confirm, put, put_json, put_table, say
from launcher.cli.parsing import group
from launcher.cli.screen import ScreenRequest, on_terminal
from launcher.core.errors import UserError, of_file, of_writing
from launcher.core.files import near_file, write_atomic
from launcher.core.text import hint_of

app = group("List, show, edit, copy, import and export presets.")

Own = Annotated[str, typer.Argument(metavar="PRESET", help="One of your own presets.")]
New = Annotated[str, typer.Argument(metavar="NEW", help="The new name.")]


@app.command("list")
def list_(
    recipes: Annotated[
        bool, typer.Option("--recipes", help="List recipes (published settings of algorithms) instead.")
    ] = False,
    json: Json = False,
) -> None:
    """List your presets and the shipped ones. Recommends one for this machine."""
    if recipes:
        _list_recipes(json)
        return
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
        say("for another algorithm add recipe=NAME to any of them; 'ppo-tui preset list --recipes' lists the names")


def _list_recipes(json: bool) -> None:
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


@app.command()
def show(
    preset: Preset,
    settings: Settings = None,
    command: Annotated[bool, typer.Option("--command", help="Print the exact shell command of a run instead.")] = False,
    json: Json = False,
) -> None:
    """Print the settings of a preset and the source of each value."""
    if command:
        _put_command(preset, settings or [], json)
        return
    from launcher.preset.files import load
    from launcher.preset.yaml_text import text_of

    loaded = load(preset, settings or [])
    if json:
        put_json(loaded.snapshot())
        return
    rows = [("FIELD", "VALUE", "FROM")]
    for path, entry in loaded.layer.items():
        place = entry.source.rpartition("/")[2]  # the file's name is enough
        rows.append((".".join((*path[:-1], entry.spelling)), text_of(entry.value), place))
    put_table(rows)


def _put_command(preset: str, settings: list[str], json: bool) -> None:
    from launcher.preset.translate import RunFolders, command_line
    from launcher.runs.act.start import Plan

    # The pasted command has no run directory: it writes below the folder where it is run.
    below = Path.cwd() / "outputs" / Path(preset).name.removesuffix(".yaml")
    launch = Plan.of(preset, settings).launch(RunFolders.below(below))
    if json:
        put_json({"argv": launch.argv, "env": launch.env})
    else:
        print(command_line(launch))


@app.command()
def edit(
    ctx: typer.Context,
    preset: Preset,
    field: Annotated[str | None, typer.Argument(metavar="KEY", help="Field or veRL key to select.")] = None,
) -> None:
    """Edit a preset on the screen. Edits of a shipped preset are saved as your own preset."""
    from launcher.preset.drafts import open_draft
    from launcher.preset.field_values import field_named

    open_draft(preset)  # reports errors before the screen opens
    wanted = field_named(field) if field else None
    if not on_terminal():
        raise UserError(
            "the editor requires a terminal",
            "edit the files that 'ppo-tui preset list --json' lists, or pass settings after the preset",
        )
    raise typer.Exit(ctx.obj.open(ScreenRequest(preset=preset, field=wanted)))


@app.command()
def copy(preset: Preset, new: New) -> None:
    """Copy a preset, comments included, to your presets."""
    from launcher.preset import library

    put(str(library.copy(preset, new)))


@app.command()
def rename(preset: Own, new: New) -> None:
    """Rename one of your presets. Presets that extend it are updated."""
    from launcher.preset import library

    put(str(library.rename(preset, new)))


@app.command()
def delete(preset: Own, yes: Yes = False) -> None:
    """Delete one of your presets. A shipped preset of the same name becomes visible again."""
    from launcher.preset import library

    library.own(preset)
    confirm(f"Delete your preset {preset}?", yes, f"deleting preset {preset}")
    uncovered = library.delete(preset)
    say(f"deleted preset {preset}" + ("; the shipped preset with that name is visible again" if uncovered else ""))


@app.command("import")
def import_(
    script: Annotated[str, typer.Argument(help="A shell script, or - to read a command from stdin.")],
    args: Annotated[
        list[str] | None,
        typer.Argument(metavar="ARGUMENT", help="Arguments of the script; NAME=VALUE sets a variable for it."),
    ] = None,
    lossy: Annotated[bool, typer.Option("--lossy", help="Import even if the preset would train differently.")] = False,
    join: Annotated[bool, typer.Option("--join-comments", help="Ignore comments inside the command.")] = False,
    name: Annotated[str | None, typer.Option(help="Name of the preset [default: the script's name].")] = None,
    json: Json = False,
) -> None:
    """Create a preset from a script or a command. Nothing is run.

    Relative paths in the script start in the current folder.
    """
    from launcher.check.checks import wrong_keys
    from launcher.preset.draft import free_name, target
    from launcher.scripts.importer import Lossy, add_script
    from launcher.scripts.verl_command import Source

    if script == "-":
        if name is None:
            raise UserError("a preset from stdin requires a name", "add --name NAME")
        text, file = sys.stdin.read(), None
    else:
        file = Path(script).expanduser()
        try:
            text = file.read_bytes().decode("utf-8", "replace")
        except OSError as error:
            raise of_file(f"cannot read {file}", error, hint_of(near_file(file))) from None
    wanted = name or Path(script).stem
    if target(wanted).exists():
        raise UserError(f"preset '{wanted}' already exists", f"choose another name: --name {free_name(wanted)}")
    source = Source(text, Path.cwd(), file, tuple(args or ()))
    source = source.joined() if join else source
    try:
        path, imported = add_script(source, wanted, lossy=lossy)
    except Lossy as error:
        fixed = "write the values into the script, or " if error.undecided else ""
        raise UserError(str(error), f"{fixed}import it with these differences: --lossy") from None
    wrong = wrong_keys(str(path))
    if json:
        found = [each.as_json() for each in wrong]
        put_json({"path": str(path), "notes": list(imported.notes), "findings": found})
        return
    for note in imported.notes:
        say(note)
    if imported.cut and source.joined() is not source:
        say("hint: --join-comments imports the settings below a comment too")
    for finding in wrong:
        say(f"warning: {finding.message}")
        say(f"hint: {finding.fix}")
    put(str(path))
    say(f"check it with 'ppo-tui check {path.stem}', edit it with 'ppo-tui preset edit {path.stem}'")


@app.command()
def export(
    preset: Preset,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="File to write [default: print to stdout].")
    ] = None,
    verl: Annotated[str | None, typer.Option(help="veRL version of the script [default: the installed one].")] = None,
    slurm: Annotated[
        bool, typer.Option("--slurm", help="Write an sbatch script that starts Ray on its nodes.")
    ] = False,
    ray_job: Annotated[bool, typer.Option("--ray-job", help="Write the 'ray job submit' command.")] = False,
    sky: Annotated[bool, typer.Option("--sky", help="Write a SkyPilot task, for 'sky launch'.")] = False,
) -> None:
    """Write a preset as a shell script of veRL overrides. The script runs without ppo-tui's screen."""
    from launcher.scripts import exporter

    if slurm + ray_job + sky > 1:
        raise UserError("--slurm, --ray-job and --sky exclude each other", "use one of them")
    write = exporter.sky if sky else exporter.slurm if slurm else exporter.ray_job if ray_job else exporter.script
    # nothing of this machine's folders is on those of a cloud
    below = (Path("/tmp") if sky else Path.cwd()) / "outputs" / Path(preset).name.removesuffix(".yaml")
    text = write(preset, verl, below)
    if output is None:
        put(text.rstrip("\n"))
        return
    try:
        write_atomic(file := output.expanduser(), text.encode())
        file.chmod(0o755)
    except OSError as error:
        raise of_writing(output, error) from None
    put(str(output))
