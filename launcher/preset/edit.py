"""The user's own editor, and the field that a key means."""

import os
import shlex
import shutil

from launcher.errors import UserError
from launcher.preset.schema import BY_KEY, FIELDS
from launcher.preset.versions import newest
from launcher.text import did_you_mean

_EDITORS = ("nano", "vim", "vi")


def editor() -> list[str]:
    """The words of $VISUAL or $EDITOR, or an editor that is there. Raises UserError."""
    named = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if named:
        return shlex.split(named)
    found = next((name for name in _EDITORS if shutil.which(name)), None)
    if found is None:
        raise UserError("there is no editor: set EDITOR to one")
    return [found]


def field_named(key: str) -> str:
    """The preset field of a field's name, or of a key of any veRL, with or without `+`. Raises UserError."""
    bare = key.lstrip("+")
    if bare in FIELDS:
        return bare
    if (spec := BY_KEY.get(newest(bare))) is not None:
        return spec.name
    raise UserError(f"'{key}' is no field of a preset{did_you_mean(bare, [*FIELDS, *BY_KEY])}")
