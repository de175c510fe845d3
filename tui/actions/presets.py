"""Presets as files, from the list: a copy, another name, or gone. Shipped ones are only copied."""

import asyncio
from collections.abc import Callable
from typing import Any

from textual.app import App

from launcher.errors import UserError
from tui.screens.ask import AskScreen
from tui.screens.confirm import ConfirmScreen


async def copy_preset(app: App[Any], name: str) -> None:
    """Asks for the name of the copy."""
    from launcher.preset.library import copy

    await _named_anew(app, f"Copy {name} as", f"{name}-copy", lambda new: copy(name, new), "Not copied")


async def rename_preset(app: App[Any], name: str) -> None:
    """Asks for the new name; presets that extend it go along."""
    from launcher.preset.library import rename

    await _named_anew(app, f"Rename {name} to", name, lambda new: rename(name, new), "Not renamed")


async def delete_preset(app: App[Any], name: str) -> None:
    """Asks first."""
    from launcher.preset.files import users
    from launcher.preset.library import delete

    details = f"{users().get(name, name)}\n\nRuns made from it keep its values."
    question = ConfirmScreen(f"Delete the preset {name}?", details, "y  delete it", "n  keep it")
    if name in users() and not await app.push_screen_wait(question):
        return
    try:
        shadowed = await asyncio.to_thread(delete, name)
    except UserError as error:
        _tell(app, error, "Not deleted")
        return
    again = "; the one that comes with ppo-tui shows again" if shadowed else ""
    app.notify(f"Deleted {name}{again}.", markup=False)


async def _named_anew(
    app: App[Any], question: str, text: str, act: Callable[[str], Any], failed: str
) -> None:
    def wrong(new: str) -> str | None:
        return None if new.strip() else "a name"

    new = await app.push_screen_wait(AskScreen(question, text, wrong))
    if new is None:
        return
    try:
        path = await asyncio.to_thread(act, new.strip())
    except UserError as error:
        _tell(app, error, failed)
        return
    app.notify(str(path), markup=False)


def _tell(app: App[Any], error: UserError, title: str) -> None:
    app.notify(str(error), title=title, severity="error", markup=False)
