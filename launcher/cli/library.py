"""`ppo-tui preset`: presets as files of yours."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from launcher.cli.output import Json, Preset, Yes, confirm, put, put_json, put_table, say
from launcher.cli.parsing import group
from launcher.core.errors import UserError, of_file, of_writing
from launcher.core.files import beside, write_atomic
from launcher.core.text import near_hint

app = group("Copy, rename, delete, import and export presets.")

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
def delete(preset: Own, yes: Yes = False) -> None:
    """Delete one of your presets. A shipped preset of the same name becomes visible again."""
    from launcher.preset import library

    library.own(preset)
    confirm(f"Delete your preset {preset}?", yes, f"deleting preset {preset}")
    uncovered = library.delete(preset)
    say(f"deleted preset {preset}" + ("; the shipped preset of that name is visible again" if uncovered else ""))


@app.command("import")
def import_(
    script: Annotated[str, typer.Argument(metavar="SCRIPT", help="A shell script, or - to read a command from stdin.")],
    args: Annotated[
        list[str] | None,
        typer.Argument(metavar="ARGUMENT", help="Arguments of the script; NAME=VALUE sets a variable for it."),
    ] = None,
    lossy: Annotated[
        bool, typer.Option("--lossy", help="Import it although the preset would train differently.")
    ] = False,
    run: Annotated[
        bool,
        typer.Option("--exec", help="Run the script with programs that do nothing but record how they are called."),
    ] = False,
    yes: Yes = False,
    name: Annotated[str | None, typer.Option(help="Name of the preset (default: the script's name).")] = None,
    json: Json = False,
) -> None:
    """Create a preset from a script or command with veRL overrides. Nothing is run without --exec.

    The script is read as if it were run from the current folder.
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
            text = file.read_text("utf-8", errors="replace")
        except OSError as error:
            raise of_file(f"cannot read {file}", error, near_hint(file.name, beside(file))) from None
    wanted = name or Path(script).stem
    if target(wanted).exists():
        raise UserError(f"preset '{wanted}' already exists", f"choose another name: --name {free_name(wanted)}")
    if run:
        from launcher.scripts.bash.recording import sandbox

        kept = (
            "Files are read-only for it, and it has no network." if sandbox() else "It can read and write your files."
        )
        confirm(f"Run {script} in an empty folder, with programs that only record? {kept}", yes, "--exec")
    source = Source(text, Path.cwd(), file, tuple(args or ()), execute=run)
    try:
        path, imported = add_script(source, wanted, lossy=lossy)
    except Lossy as error:
        other = "" if run else "; --exec runs the script in bash with stub programs that only record their arguments"
        fixed = "; NAME=VALUE behind it fixes a variable" if error.undecided and not run else ""
        raise UserError(f"{error}\nTo import it with these differences, add --lossy{fixed}{other}.") from None
    if json:
        put_json({"path": str(path), "notes": list(imported.notes)})
        return
    for note in imported.notes:
        say(note)
    for finding in wrong_keys(str(path)):
        say(f"warning: {finding.message}")
        say(f"hint: {finding.fix}")
    put(str(path))
    say(f"check it with 'ppo-tui check {path.stem}', edit it with 'ppo-tui edit {path.stem}'")


@app.command()
def export(
    preset: Preset,
    to: Annotated[Path | None, typer.Option(help="File to write (default: print to stdout).")] = None,
    verl: Annotated[
        str | None, typer.Option("--verl", help="veRL version to write the script for (default: the installed one).")
    ] = None,
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
    if to is None:
        put(text.rstrip("\n"))
        return
    try:
        write_atomic(file := to.expanduser(), text.encode())
        file.chmod(0o755)
    except OSError as error:
        raise of_writing(to, error) from None
    put(str(to))
