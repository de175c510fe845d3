"""Presets as files, from the list: copied, renamed, deleted, imported, tuned. Shipped ones are not changed."""

import asyncio
import contextlib
import re
import shlex
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from textual.app import App

from launcher.core import paths
from launcher.core.errors import UserError
from launcher.core.files import near_file
from launcher.core.text import clean, hint_of
from launcher.scripts.verl_command import Source
from tui.kit.actions.background import in_background, narrator, reported
from tui.kit.actions.editing import edit_preset
from tui.kit.actions.preset_saving import taken
from tui.kit.dialogs.ask import ask_and_do
from tui.kit.dialogs.choose import ChooseScreen, confirmed

_PATH = re.compile(r"[^\s=]*/[^\s=]*|[^\s=]+\.sh")  # and no command: a single word without a value


async def copy_preset(app: App[Any], name: str) -> None:
    """Asks for the name of the copy."""
    from launcher.preset.draft import free_name
    from launcher.preset.library import copy

    _say_where(app, "Copied to", await ask_and_do(app, f"Copy {name} as", free_name(name), partial(copy, name), taken))


async def rename_preset(app: App[Any], name: str) -> None:
    """Asks for the new name; presets that extend it are changed too."""
    from launcher.preset.library import own, rename

    with reported(app, "Not renamed"):
        own(name)
        _say_where(app, "Renamed to", await ask_and_do(app, f"Rename {name} to", name, partial(rename, name), taken))


async def delete_preset(app: App[Any], name: str) -> None:
    """Asks, then deletes a preset."""
    from launcher.preset.files import users
    from launcher.preset.library import delete

    details = f"{users().get(name, name)}\n\nRuns started from it keep its settings."
    if name in users() and not await confirmed(app, f"Delete the preset {name}?", details, "delete"):
        return
    with reported(app, "Not deleted"):
        shadowed = await asyncio.to_thread(delete, name)
        again = "; the shipped preset with that name is visible again" if shadowed else ""
        app.notify(f"Deleted {name}{again}", markup=False)


async def import_preset(app: App[Any], text: str) -> None:
    """Makes a preset from a veRL command, a script, or its path and arguments, and opens it."""
    from launcher.check.checks import wrong_keys
    from launcher.preset.draft import free_name
    from launcher.scripts.importer import Lossy, add_script, from_script

    named, name = _script(text)
    if (source := await _with_cut(app, named, name)) is None:
        return
    lossy = False
    try:
        from_script(source, name)  # not in a thread: meanwhile, keys for the next question would go to the list
    except Lossy as error:
        details = clean("\n".join(error.losses))
        if not await confirmed(app, "The preset would train differently. Import it?", details, "import"):
            return
        lossy = True
    made = await ask_and_do(
        app, "Import as preset", free_name(name), lambda new: add_script(source, new, lossy=lossy), taken
    )
    if made is None:
        return
    path, found = made
    wrong = [each.message for each in await asyncio.to_thread(wrong_keys, str(path))]
    if wrong:  # a later message would hide this one; the notes are also in the preset
        app.notify("\n".join(map(clean, wrong)), title="Wrong keys", severity="warning", markup=False, timeout=20)
    elif found.notes:
        app.notify("\n".join(map(clean, found.notes)), title="Notes at the top of the preset", markup=False, timeout=20)
    edit_preset(app, str(path) if path.parent != paths.presets_dir() else path.stem)


async def _with_cut(app: App[Any], source: Source, name: str) -> Source | None:
    """The script, without comments inside its command if the user wants the settings below them; None to cancel."""
    from launcher.scripts.importer import from_script

    joined = source.joined()
    if joined is source or not (cut := from_script(source, name, lossy=True).cut):
        return source
    choices = [("s", "as the shell"), ("j", "join")]
    reply = await app.push_screen_wait(
        ChooseScreen("Ignore the comments inside the command?", clean("\n".join(cut)), choices)
    )
    return None if reply is None else joined if reply == "j" else source


def _script(text: str) -> tuple[Source, str]:
    """The pasted script, or the script at a path with arguments, and a name for it. Raises UserError."""
    from launcher.scripts.verl_command import Source

    if (found := named_file(text)) is not None:
        file, args = found
        try:
            return Source(file.read_bytes().decode("utf-8", "replace"), Path.cwd(), file, args), file.stem
        except OSError as error:
            raise UserError(f"cannot read {file}: {error.strerror}") from None
    if is_path(text):
        named = Path(unquoted(text)).expanduser()
        raise UserError(f"no such file: {named}", hint_of(near_file(named)))
    return Source(text, Path.cwd()), "imported"


def named_file(text: str) -> tuple[Path, tuple[str, ...]] | None:
    """The file and arguments in a line; None for a text without a file.

    Terminals quote a dropped path, or escape its blanks.
    """
    line = text.strip()
    if not line or len(line.splitlines()) > 1:
        return None
    first, *args = line.split()
    for path, behind in ((line, []), (unquoted(line), []), (first, args)):  # a path may have blanks
        with contextlib.suppress(OSError, ValueError, RuntimeError):  # too long, a NUL, or an unknown home
            if (file := Path(path).expanduser()).is_file():
                return file, tuple(behind)
    return None


def is_path(text: str) -> bool:
    """Whether a text can only be a path."""
    return _PATH.fullmatch(unquoted(text)) is not None


def unquoted(text: str) -> str:
    """A line without shell quotes, if it is one word."""
    try:
        words = shlex.split(text)
    except ValueError:
        return text.strip()
    return words[0] if len(words) == 1 else text.strip()


def no_script(text: str) -> str | None:
    """Why a text is not an importable command or script."""
    from launcher.scripts.importer import Lossy, from_script

    try:
        from_script(*_script(text))
    except Lossy:
        return None  # asked later
    except (UserError, RuntimeError) as error:  # there is no home folder for ~name
        return str(error)
    return None


def _say_where(app: App[Any], what: str, path: Path | None) -> None:
    if path is not None:
        app.notify(f"{what} {path}", markup=False)


async def tune_preset(app: App[Any], name: str) -> None:
    """Asks, then tunes a preset while the screen is open. Runs in a worker."""
    from launcher.preset.draft import target
    from launcher.preset.files import load
    from launcher.runs.act.tune import PROBES, told, tune

    path = target(f"{name}-tuned")
    if path.exists():
        app.notify(f"preset {path.stem} exists already; rename or delete it", severity="error", markup=False)
        return
    details = (
        f"At most {PROBES} short runs, one after another, with responses of full length. The fastest settings that fit "
        f"become the preset {path.stem}.\n\nTuning stops when this screen closes; tune again to continue."
    )
    if not await confirmed(app, f"Tune the preset {name}?", details, "tune"):
        return
    with reported(app, f"{name} is not tuned"):
        found = await in_background(lambda: tune(load(name), path, narrator(app)))
        app.notify(told(found.best), title=f"{path.stem} is ready", markup=False, timeout=20)


async def prepare_data(app: App[Any]) -> None:
    """Asks which data set, and writes it to the shipped presets' folder. Runs in a worker."""
    details = "GSM8K and MATH are downloaded from the Hugging Face hub to ~/data; the toy task is built offline."
    choices = [("g", "GSM8K"), ("m", "MATH"), ("t", "toy task")]
    choice = await app.push_screen_wait(ChooseScreen("Prepare data", details, choices))
    if choice is None:
        return
    name = dict(choices)[choice]
    app.notify(f"Preparing {name}", markup=False)
    with reported(app, f"{name} not prepared"):
        folder = await in_background(partial(_write, choice, narrator(app)))
        app.notify(str(folder), title=f"{name} is ready", markup=False)


def _write(choice: str, narrate: Callable[[str], None]) -> Path:
    from launcher.data import gsm8k, math, toy
    from launcher.verl import env as verl_env

    if choice == "t":
        return toy.ensure(python=verl_env.interpreter(None), progress=narrate)
    builder, name = (gsm8k, "gsm8k") if choice == "g" else (math, "math")
    folder = Path("~/data").expanduser() / name
    builder.write(None, folder)
    return folder
