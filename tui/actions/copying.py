"""Copying text out of the screen."""

from pathlib import Path

from textual.app import App

from launcher.files import write_atomic
from launcher.paths import cache_dir

LARGEST = 1 << 20  # characters
_CLIPBOARD = 74_000  # characters that terminals take in one escape sequence


def copy(app: App[None], name: str, text: str) -> Path:
    """Sends text to the terminal's clipboard and to a file, for tmux may swallow the former.

    Returns the file, `<cache>/copied/<name>.txt`; each copy replaces the one before. Raises OSError.
    """
    if len(text) <= _CLIPBOARD:
        app.copy_to_clipboard(text)
    folder = cache_dir() / "copied"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / f"{name}.txt"
    write_atomic(path, text.encode(errors="replace"))
    return path
