"""Metrics that the user wants on every dashboard, remembered in layout.json."""

from launcher.core.files import read_json, write_json
from launcher.core.paths import layout_file

MOST = 4


def pinned() -> list[str]:
    """The pinned keys in the order of pinning; none when the file is missing or broken."""
    keys = read_json(layout_file()).get("pins")
    good = [key for key in keys if isinstance(key, str) and key] if isinstance(keys, list) else []
    return list(dict.fromkeys(good))[:MOST]


def toggle(key: str) -> bool:
    """Pins a key, or takes it off; whether it is pinned now. With `MOST` pins the oldest one goes.

    Raises OSError when the file cannot be written.
    """
    keys = pinned()
    now = key not in keys
    keys = [*keys, key][-MOST:] if now else [other for other in keys if other != key]
    path = layout_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, {"schema": 1, "pins": keys})
    return now
