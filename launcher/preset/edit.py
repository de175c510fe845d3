"""Opening a preset in the user's own editor, on the line of a field.

A shipped preset is never touched: the user gets a preset of the same name that extends it and holds only what
differs; it shadows the shipped one.
"""

import io
import os
import shlex
import shutil
from pathlib import Path
from typing import Any

from launcher import paths
from launcher.errors import UserError
from launcher.files import write_atomic
from launcher.preset.files import load
from launcher.preset.schema import BY_KEY, FIELDS, value_of
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
    """The preset field of a field's name or veRL key, with or without `+`. Raises UserError."""
    bare = key.lstrip("+")
    if bare in FIELDS:
        return bare
    if bare in BY_KEY:
        return BY_KEY[bare].name
    raise UserError(f"'{key}' is no field of a preset{did_you_mean(bare, [*FIELDS, *BY_KEY])}")


def place(name_or_path: str, field: str | None = None) -> tuple[Path, int]:
    """The file to edit and the line (from 1) of the field, which is written there first if it was not.

    Raises UserError for unknown presets and fields; a broken file is opened as it is.
    """
    wanted = field_named(field) if field else None
    try:
        loaded = load(name_or_path)
    except UserError:
        broken = paths.presets_dir() / f"{name_or_path}.yaml"
        if broken.is_file():
            return broken, 1
        raise
    path = loaded.path
    if path is None or loaded.origin == "shipped":
        path = paths.presets_dir() / f"{loaded.name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(path, f"# Yours: lies over the shipped preset of this name.\nextends: {loaded.name}\n")
    return path, _line(path, wanted, value_of(loaded.preset, FIELDS[wanted])) if wanted else 1


def _line(path: Path, field: str, value: Any) -> int:
    """The line of a field in a file, with `value` when the file did not have it."""
    from ruamel.yaml import YAML
    from ruamel.yaml.comments import CommentedMap

    yaml = YAML()
    yaml.preserve_quotes = True
    document = yaml.load(path.read_text("utf-8"))
    node, *rest = field.split(".")
    if rest and node not in document:
        document[node] = CommentedMap()
    holder, name = (document[node], rest[-1]) if rest else (document, node)
    if name not in holder:
        holder[name] = value
        holder.yaml_add_eol_comment(FIELDS[field].about, name)
        text = io.StringIO()
        yaml.dump(document, text)
        _write(path, text.getvalue())
        return _line(path, field, value)
    return int(holder.lc.key(name)[0]) + 1


def _write(path: Path, text: str) -> None:
    write_atomic(path, text.encode())
