"""The presets that a list shows, and when their files were changed."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from launcher.core.errors import UserError

if TYPE_CHECKING:
    from launcher.preset.files import Summary


def preset_files() -> list[tuple[Path, int]]:
    from launcher.preset.files import available

    return [(path, path.stat().st_mtime_ns) for path in available().values() if path.exists()]


def read_presets() -> list[Summary]:
    from launcher.preset.files import available, summary

    found = []
    for name in available():
        with suppress(UserError):  # one that was renamed or deleted in this moment
            found.append(summary(name))
    return found
