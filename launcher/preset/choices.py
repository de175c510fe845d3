"""What can be put into a field: its choices, sizes that divide the batch, files, models, presets; veRL's keys."""

import contextlib
import functools
import os
from collections.abc import Sequence
from pathlib import Path

from launcher.preset.effective import EffectiveConfig
from launcher.preset.layers import Where
from launcher.preset.schema import FIELDS
from launcher.preset.steps import allowed
from launcher.verl.defaults import NEWEST, leaves, tree

MOST = 200


def choices(where: Where, text: str, *, fresh: bool, config: EffectiveConfig, folder: Path) -> list[str]:
    """What fits the text typed so far. `fresh`: nothing was typed yet, so that everything is offered.

    Files are those of the folder that the text names, relative ones from `folder`; folders end in `/`.
    """
    spec = FIELDS.get(".".join(where))
    if spec is None:
        return []
    if spec.choices:
        return _fitting(spec.choices, text, fresh)
    if bool in spec.types:
        return _fitting(("true", "false"), text, fresh)
    if spec.scale == "divisor":
        return _fitting([str(value) for value in allowed(spec.name, config)], text, fresh)
    names: Sequence[str] = spec.suggested
    if where == ("extends",):
        from launcher.preset.files import available

        names = list(available())
    elif where == ("recipe",):
        from launcher.preset.files import recipes

        names = list(recipes())
    named = _fitting(names, text, fresh)
    if spec.kind == "path" or where == ("extends",) or (spec.kind and text.startswith(("/", "~", ".", "$"))):
        named += files(text, folder, fresh=fresh)
    return named


def files(text: str, folder: Path, *, fresh: bool = False) -> list[str]:
    """Entries of the folder that a path names so far, folders first, spelled as the path is."""
    head, slash, tail = text.rpartition("/")
    if text == "~":
        head, slash, tail = "~", "/", ""
    found: list[tuple[bool, str]] = []
    with contextlib.suppress(OSError, RuntimeError, ValueError):
        above = folder / Path(os.path.expandvars(head + slash)).expanduser()
        for entry in os.scandir(above):
            hidden = entry.name.startswith(".") and not tail.startswith(".")
            if not hidden and (fresh or entry.name.startswith(tail)):
                is_file = not entry.is_dir()
                found.append((is_file, f"{head}{slash}{entry.name}{'' if is_file else '/'}"))
    return [name for _, name in sorted(found)[:MOST]]


def _fitting(names: Sequence[str], text: str, fresh: bool) -> list[str]:
    wanted = text.strip().lower()
    if fresh:
        return list(names)
    begin = [name for name in names if name.lower().startswith(wanted)]
    return begin or [name for name in names if wanted in name.lower()]


def verl_keys(typed: str = "", version: str = NEWEST, verl: Path | None = None) -> list[str]:
    """The keys of veRL `version` that begin with what has been typed, else those that contain it.

    A leading `+` is left out of the comparison. `verl` is the folder of the installed veRL; the first call
    for it takes half a second.
    """
    return _fitting(_known(version, verl), typed.lstrip("+"), fresh=False)


@functools.cache
def _known(version: str, verl: Path | None) -> tuple[str, ...]:
    return tuple(sorted(leaves(tree(version, verl))))
