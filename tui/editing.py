"""Opening a preset in the user's editor, in the place of the screen."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

from textual.app import SuspendNotSupported

from launcher.errors import UserError

if TYPE_CHECKING:
    from textual.app import App


def edit_preset(app: App[Any], preset: str, field: str | None) -> None:
    """Opens the editor on the line of a field and waits for it; what went wrong is told as a toast.

    `field` is a preset field or veRL key; None opens the first line.
    """
    from launcher.preset.edit import editor, place
    from launcher.preset.files import load

    try:
        path, line = place(preset, field)
        words = editor()
        with app.suspend():
            subprocess.run([*words, f"+{line}", str(path)], check=False)
        load(str(path))
    except UserError as error:
        app.notify(str(error), title="Preset", severity="error", markup=False, timeout=20)
    except (OSError, SuspendNotSupported) as error:
        app.notify(f"the editor cannot be started: {error}", severity="error", markup=False)
    else:
        app.notify(f"{path} is in order. It is for the next run: this one keeps its settings.", markup=False)


def field_of(fixes: list[str]) -> tuple[str | None, str | None]:
    """The first of some fixes that is about a field of a preset: the fix and the field; None without one."""
    from launcher.preset.edit import field_named

    for fix in fixes:
        try:
            return fix, field_named(fix.partition(" ")[0])
        except UserError:
            continue
    return None, None
