"""What a preset needs on disk before it can start, and that we can build ourselves."""

from collections.abc import Callable
from pathlib import Path

from launcher.data import toy
from launcher.paths import cache_dir
from launcher.preset.schema import Preset


def ensure(preset: Preset, python: str, narrate: Callable[[str], None]) -> None:
    """Builds the toy model and data when the preset points at them; nothing when they are there already."""
    if preset.model.path and Path(preset.model.path).is_relative_to(cache_dir() / "toy"):
        toy.ensure(python=python, progress=narrate)
