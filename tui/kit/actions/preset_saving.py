"""Saves a draft from a screen, without losing changes of another program or unsaved ones."""

import os
import shlex
import shutil
import tempfile
from pathlib import Path
from typing import Any

from textual.app import App, SuspendNotSupported

from launcher.core.errors import UserError
from launcher.preset.draft import ChangedOnDisk, Draft, free_name, target
from launcher.preset.yaml_text import Where
from tui.kit.actions.background import in_terminal
from tui.kit.dialogs.ask import ask_and_do
from tui.kit.dialogs.choose import ChooseScreen

_EDITORS = ("nano", "vim", "vi")


async def save(app: App[Any], draft: Draft) -> bool:
    """Writes the file; asks first if it changed on disk. Returns whether it is saved."""
    if draft.needs_name:
        return await save_as(app, draft)
    try:
        draft.save()
    except ChangedOnDisk as changed:
        choice = await app.push_screen_wait(_conflict(draft, str(changed)))
        if choice == "o":
            draft.save(over=True)
        elif choice == "a":
            return await save_as(app, draft)
        elif choice == "r":
            draft.reload()
        return choice == "o"
    app.notify(f"Saved: {draft.path}", markup=False)
    return True


def _conflict(draft: Draft, said: str) -> ChooseScreen:
    if draft.stale() == "removed":
        choices = [("o", "save again"), ("a", "save as"), ("c", "cancel")]
        return ChooseScreen("The file was removed", f"{said}.", choices)
    return ChooseScreen(
        "The file has changed on disk",
        f"{said}. Overwrite discards the other changes; reload keeps yours in undo.",
        [("o", "overwrite"), ("a", "save as"), ("r", "reload")],
    )


async def save_as(app: App[Any], draft: Draft) -> bool:
    """Asks for a name and writes another file. Returns whether it is saved."""

    def write(name: str) -> bool:
        draft.save_as(name)
        return True

    saved = await ask_and_do(app, "Save as preset", free_name(draft.name), write, taken)
    if saved:
        app.notify(f"Saved: {draft.path}", markup=False)
    return bool(saved)


async def may_leave(app: App[Any], draft: Draft) -> bool:
    """Whether the draft can be closed: saved, or discarded by the user."""
    if not draft.changed:
        return True
    choice = await app.push_screen_wait(
        ChooseScreen(
            f"Leave {draft.name} with unsaved changes?", "", [("d", "discard"), ("s", "save"), ("c", "cancel")]
        )
    )
    return choice == "d" or (choice == "s" and await save(app, draft))


def edit_outside(app: App[Any], draft: Draft, where: Where = ()) -> None:
    """Opens the draft at a value in the user's own editor; the result is a normal change."""
    try:
        words = editor_command()
        with tempfile.TemporaryDirectory(prefix="ppo-tui-") as folder:
            copy = Path(folder) / draft.path.name
            copy.write_text(draft.text, "utf-8")
            _run_suspended(app, [*words, f"+{draft.line(where)}", str(copy)])
            draft.replace(copy.read_text("utf-8"))
    except UserError as error:
        app.notify(str(error), severity="error", markup=False)
    except (OSError, UnicodeDecodeError, SuspendNotSupported) as error:
        app.notify(f"Cannot use the editor: {error}", severity="error", markup=False)


def _run_suspended(app: App[Any], command: list[str]) -> None:
    """Gives the terminal to a program until it ends. Raises UserError if it cannot start, or fails."""
    try:
        code = in_terminal(app, command)
    except SuspendNotSupported:
        raise
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UserError(f"cannot start {command[0]}: {reason}", "set EDITOR to an installed editor") from None
    if code:
        raise UserError(f"{command[0]} failed with exit code {code}; the text is unchanged")


def taken(name: str) -> str | None:
    """Why a preset cannot get a name."""
    try:
        path = target(name)
    except UserError as error:
        return str(error)
    return f"{path} already exists; choose another name" if path.exists() else None


def editor_command() -> list[str]:
    """The words of $VISUAL or $EDITOR, or an installed editor. Raises UserError."""
    named = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if named:
        try:
            words = shlex.split(named)
        except ValueError as error:
            raise UserError(f"EDITOR={named!r} is not a command: {error}") from None
        if words:
            return words
    found = next((name for name in _EDITORS if shutil.which(name)), None)
    if found is None:
        raise UserError("no editor found", "set EDITOR to one")
    return [found]
