"""Sources of drafts: a user's or shipped preset, a file, a run's settings; and the cache for unsaved drafts, so that a
broken connection loses no edits.
"""

import contextlib
import hashlib
import re
from pathlib import Path

from launcher.core import paths
from launcher.core.errors import UserError
from launcher.core.files import make_folder, obeyed, read_json, write_json
from launcher.core.format import SHORT_ID
from launcher.preset.draft import Draft
from launcher.preset.files import find, read_text
from launcher.preset.standalone import dump
from launcher.record.info import RunInfo

_MARK = re.compile(r"-[0-9a-f]{4}$")  # id of the run that the name came from
_CHILD = "# Your preset, made from the shipped preset that it extends.\nextends: {}\n"


def open_draft(name_or_path: str) -> Draft:
    """The draft of a preset; for a shipped one, a new unnamed preset that extends it. Also opens an unreadable file.
    Raises UserError without a file.
    """
    path, origin = find(name_or_path)
    if origin == "shipped":
        return Draft(paths.presets_dir() / f"{path.stem}.yaml", _CHILD.format(path.stem), on_disk=None)
    text = read_text(path)
    return Draft(path, text, on_disk=text)


def draft_of_run(info: RunInfo) -> Draft:
    """The draft of a new preset with exactly a run's settings, from its run.yaml.

    Raises UserError for a run without a preset whose log does not show its settings.
    """
    if info.preset is None:
        raise UserError(f"run {info.id} was not started by ppo-tui and its log contains no settings")
    name = "-".join(_MARK.sub("", info.name or "run").split())  # a replay's has blanks
    path = paths.presets_dir() / f"{name}-{info.id[:SHORT_ID]}.yaml"
    heading = f"# Settings of run {info.id}."
    if info.from_log:
        heading = f"# Settings of run {info.id}, read from its log: only values that differ from the defaults."
    return Draft(path, dump(info.preset, heading, info.preset_notes), on_disk=None, run=info.id)


def keep_unsaved(draft: Draft) -> None:
    """Stores a draft in the cache, or removes it if nothing is unsaved. Never raises."""
    if not draft.changed:
        forget_unsaved(draft)
        return
    with contextlib.suppress(OSError):
        place = _place(draft.path)
        make_folder(place.parent)
        write_json(place, {"schema": 1, "on_disk": draft.on_disk, "text": draft.text})


def forget_unsaved(draft: Draft) -> None:
    """Removes a saved or discarded draft from the cache."""
    with contextlib.suppress(OSError):
        _place(draft.path).unlink(missing_ok=True)


def restore_unsaved(draft: Draft) -> bool:
    """Restores an unsaved draft, unless its file has changed; undo removes it. Raises UserError."""
    found = read_json(obeyed(_place(draft.path)))
    text = found.get("text")
    if not isinstance(text, str) or found.get("on_disk") != draft.on_disk or text == draft.text:
        return False
    draft.replace(text)
    return True


def _place(path: Path) -> Path:
    mark = hashlib.sha256(str(path).encode()).hexdigest()[:8]
    return paths.cache_dir() / "drafts" / f"{path.stem}-{mark}.json"
