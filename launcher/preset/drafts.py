"""Where drafts come from: a preset of yours, a shipped one, a file, the settings of a run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from launcher import paths
from launcher.errors import UserError
from launcher.format import SHORT_ID
from launcher.preset.draft import Draft
from launcher.preset.files import find
from launcher.preset.schema import Preset
from launcher.preset.yaml_text import text_of
from launcher.record.info import RunInfo

_MARK = re.compile(r"-[0-9a-f]{4}$")  # of the run that a name is from already
_SHADOW = "# Yours: lies over the shipped preset of this name.\nextends: {}\n"


def open_draft(name_or_path: str) -> Draft:
    """The draft of a preset; of a shipped one it is a new preset of yours that extends it.

    A file that cannot be read as a preset is opened, too. Raises UserError when there is none.
    """
    path, origin = find(name_or_path)
    if origin == "shipped":
        return Draft(paths.presets_dir() / f"{path.stem}.yaml", _SHADOW.format(path.stem), on_disk=None)
    try:
        text = path.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read: {error}") from None
    return Draft(path, text, on_disk=text)


def draft_of_run(info: RunInfo) -> Draft:
    """The draft of a new preset with exactly the settings of a run, from its run.yaml.

    Raises UserError for a run that no preset of ours started.
    """
    if info.preset is None:
        raise UserError(f"run {info.id} was made elsewhere: there is no preset to start from")
    name = _MARK.sub("", info.name or "run")
    path = paths.presets_dir() / f"{name}-{info.id[:SHORT_ID]}.yaml"
    return Draft(path, dump(info.preset, f"# The settings of run {info.id}."), on_disk=None, run=info.id)


def dump(preset: Mapping[str, Any], heading: str) -> str:
    """A preset as a file that depends on no other; groups in the order of the schema."""
    lines = [heading]
    for name in Preset.model_fields:
        value = preset.get(name)
        if name == "extends" or name not in preset:
            continue
        if not isinstance(value, Mapping):
            lines.append(f"{name}: {text_of(value)}")
        elif value:
            lines += ["", f"{name}:", *(f"  {text_of(key)}: {text_of(item)}" for key, item in value.items())]
    return "\n".join(lines) + "\n"
