"""`ppo-tui preset`: presets as files of yours."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from launcher.commands.output import Json, Preset, put, put_json, put_table, say
from launcher.errors import UserError

app = typer.Typer(help="Copy, rename, delete, import and export presets.", no_args_is_help=True, rich_markup_mode=None)

Own = Annotated[str, typer.Argument(metavar="PRESET", help="One of your own presets.")]
New = Annotated[str, typer.Argument(metavar="NEW", help="The new name.")]


@app.command()
def show(preset: Preset, json: Json = False) -> None:
    """Print the settings of a preset and the source of each value."""
    from launcher.preset.files import load
    from launcher.preset.yaml_text import text_of

    loaded = load(preset)
    if json:
        put_json(loaded.snapshot())
        return
    rows = [("FIELD", "VALUE", "FROM")]
    for path, entry in loaded.layer.items():
        place = entry.source.rpartition("/")[2]  # the file's name is enough
        rows.append((".".join((*path[:-1], entry.spelling)), text_of(entry.value), place))
    put_table(rows)


@app.command()
def copy(preset: Preset, new: New) -> None:
    """Copy a preset, comments included, to your presets."""
    from launcher.preset import library

    put(str(library.copy(preset, new)))


@app.command()
def rename(preset: Own, new: New) -> None:
    """Rename one of your presets, also in the presets that extend it."""
    from launcher.preset import library

    put(str(library.rename(preset, new)))


@app.command()
def delete(
    preset: Own, yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False
) -> None:
    """Delete one of your presets. A shipped preset of the same name becomes visible again."""
    from launcher.preset import library

    if not yes:
        if not sys.stdin.isatty():
            raise UserError(f"deleting preset {preset} without a terminal requires --yes")
        typer.confirm(f"Delete your preset {preset}?", abort=True, err=True)
    uncovered = library.delete(preset)
    say(f"deleted preset {preset}" + ("; the shipped preset of that name is visible again" if uncovered else ""))


@app.command("import")
def import_(
    script: Annotated[str, typer.Argument(metavar="SCRIPT", help="A shell script, or - to read a command from stdin.")],
    name: Annotated[str | None, typer.Option(help="Name of the preset (default: the script's name).")] = None,
    json: Json = False,
) -> None:
    """Create a preset from a script or command with veRL overrides. Nothing is run."""
    from launcher.preset import library
    from launcher.preset.draft import target

    if script == "-":
        if name is None:
            raise UserError("importing from stdin requires --name NAME")
        text, folder = sys.stdin.read(), Path.cwd()
    else:
        file = Path(script).expanduser()
        try:
            text, folder = file.read_text("utf-8", errors="replace"), file.absolute().parent
        except OSError as error:
            raise UserError(f"cannot read {file}: {error.strerror}") from None
    wanted = name or Path(script).stem
    if target(wanted).exists():
        raise UserError(f"preset '{wanted}' already exists; choose another name with --name NAME")
    path, found = library.add_script(text, wanted, folder)
    if json:
        put_json({"path": str(path), "notes": list(found.notes)})
        return
    for note in found.notes:
        say(note)
    put(str(path))
    say(f"check it with 'ppo-tui check {path.stem}', edit it with 'ppo-tui edit {path.stem}'")


@app.command()
def export(
    preset: Preset,
    to: Annotated[Path | None, typer.Option(help="File to write (default: print to stdout).")] = None,
    verl: Annotated[
        str | None, typer.Option("--verl", help="veRL version to write the script for (default: the installed one).")
    ] = None,
) -> None:
    """Write a preset as a shell script of veRL overrides. The script runs without ppo-tui's screen."""
    from launcher.preset.shell import script

    text = script(preset, verl, Path.cwd() / "outputs" / Path(preset).name.removesuffix(".yaml"))
    if to is None:
        put(text.rstrip("\n"))
        return
    try:
        to.expanduser().write_text(text, "utf-8")
        to.expanduser().chmod(0o755)
    except OSError as error:
        raise UserError(f"cannot write {to}: {error.strerror}") from None
    put(str(to))
