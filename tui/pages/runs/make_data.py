"""Preparing the data that presets train on, from the list."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from launcher.core.errors import UserError
from tui.kit.actions.background import in_background, narrator
from tui.kit.dialogs.choose import ChooseScreen

if TYPE_CHECKING:
    from textual.app import App


async def prepare_data(app: App[Any]) -> None:
    """Asks which data set and writes it where the shipped presets look for it. Runs in a worker."""
    details = "GSM8K and MATH are downloaded from the Hugging Face hub to ~/data; the toy task is built offline."
    choices = [("g", "GSM8K"), ("m", "MATH"), ("t", "toy task")]
    choice = await app.push_screen_wait(ChooseScreen("Prepare data", details, choices))
    if choice is None:
        return
    name = dict(choices)[choice]
    app.notify(f"Preparing {name}", markup=False)
    try:
        folder = await in_background(partial(_write, choice, narrator(app)))
    except (UserError, OSError) as error:
        app.notify(str(error), title=f"{name} not prepared", severity="error", markup=False, timeout=20)
    else:
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
