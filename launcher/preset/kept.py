"""What was not saved when the screen went away: a connection that broke must not cost an edit."""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

from launcher import paths
from launcher.files import read_json, write_json
from launcher.preset.draft import Draft


def keep(draft: Draft) -> None:
    """Writes a draft down in the cache, or forgets it when there is nothing to save. Never raises."""
    if not draft.changed:
        forget(draft)
        return
    with contextlib.suppress(OSError):
        place = _place(draft.path)
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_json(place, {"schema": 1, "on_disk": draft.on_disk, "text": draft.text})


def forget(draft: Draft) -> None:
    """It is saved, or was given up on purpose."""
    with contextlib.suppress(OSError):
        _place(draft.path).unlink(missing_ok=True)


def bring_back(draft: Draft) -> bool:
    """Goes on where a draft was left, unless its file is another one by now; undo leads back."""
    found = read_json(_place(draft.path))
    text = found.get("text")
    if not isinstance(text, str) or found.get("on_disk") != draft.on_disk or text == draft.text:
        return False
    draft.replace(text)
    return True


def _place(path: Path) -> Path:
    mark = hashlib.sha256(str(path).encode()).hexdigest()[:8]
    return paths.cache_dir() / "drafts" / f"{path.stem}-{mark}.json"
