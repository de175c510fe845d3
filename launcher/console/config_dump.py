"""The resolved configuration, which veRL's task runner pretty-prints before it starts."""

import ast
import re
from collections.abc import Mapping
from typing import Any

_MOST_LINES = 5000
_MOST_TRIES = 50
_STRINGS = re.compile(r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"")
_CODE = re.compile(r"(?:[\s{}\[\](),:0-9.e+-]|None|True|False)*")


class ConfigCollector:
    """Puts the dump together from the lines of its writer.

    Warnings of the same process stand between them, and Ray breaks lines where the process paused, so what is
    not Python data is left out and the rest is joined without line ends.
    """

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._tries = 0

    def add(self, text: bytes) -> dict[str, Any] | None:
        """The next line of the writer; the configuration by veRL key when the dump is complete."""
        self._lines.append(text)
        if not text.rstrip().endswith(b"}"):
            return None
        self._tries += 1
        return _read(self._lines)

    @property
    def hopeless(self) -> bool:
        """Too much was collected for a configuration."""
        return len(self._lines) > _MOST_LINES or self._tries > _MOST_TRIES


def _read(lines: list[bytes]) -> dict[str, Any] | None:
    kept = []
    for line in b"\n".join(lines).decode(errors="replace").split("\n"):
        if _CODE.fullmatch(_STRINGS.sub("", line)):
            kept.append(line)
    try:
        found = ast.literal_eval("".join(kept))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return flatten(found) if isinstance(found, dict) else None


def flatten(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Leaves by dotted veRL key; lists and empty mappings are leaves."""
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat
