"""A preset as a self-contained file: without redundant values, in the order of the fields."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from launcher.core.text import clean
from launcher.preset import layers
from launcher.preset.layers import Layer
from launcher.preset.schema import FIELDS, ORDER
from launcher.preset.yaml_text import text_of

_ALWAYS = ("console", "file")  # loggers that every run has
_ORDER = {spec.path: place for place, spec in enumerate(FIELDS.values())}


def without_usual_loggers(layer: Layer) -> None:
    """Removes every run's loggers from a preset's list."""
    path = ("trainer", "loggers")
    if path in layer and isinstance((entry := layer[path]).value, list):
        kept = [logger for logger in entry.value if logger not in _ALWAYS]
        layer[path] = layers.LayerEntry(kept, entry.source, entry.spelling)


def tidy(layer: Layer, *, followers: bool = True) -> None:
    """Removes redundant values: a field equal to the one that it follows (`followers`), no loggers, a list of one."""
    for spec in FIELDS.values():
        if spec.path not in layer:
            continue
        entry = layer[spec.path]
        if spec.kind and isinstance(entry.value, list) and len(entry.value) == 1:
            layer[spec.path] = layers.LayerEntry(entry.value[0], entry.source, entry.spelling)
        leader = FIELDS[spec.follows].path if spec.follows and followers else None
        if leader in layer and entry.value == layer[leader].value:
            del layer[spec.path]
    if ("trainer", "loggers") in layer and not layer["trainer", "loggers"].value:
        del layer["trainer", "loggers"]


def portable(layer: Layer) -> Layer:
    """Sorts values in schema order; paths below the home folder begin with `~` again."""
    home = f"{Path.home()}/"

    def shorter(value: Any) -> Any:
        if isinstance(value, list):
            return [shorter(item) for item in value]
        return f"~/{value[len(home) :]}" if isinstance(value, str) and value.startswith(home) else value

    paths = {spec.path for spec in FIELDS.values() if spec.kind}
    ordered = sorted(layer, key=lambda path: _ORDER.get(path, len(_ORDER)))
    return {
        path: layers.LayerEntry(shorter(entry.value), entry.source, entry.spelling) if path in paths else entry
        for path in ordered
        for entry in (layer[path],)
    }


def dump(preset: Mapping[str, Any], heading: str, notes: Iterable[str] = ()) -> str:
    """The text of a self-contained file, with notes at its head; groups in field order."""
    lines = [heading, *(f"# Note: {_one_line(note)}" for note in notes)]
    for name in ORDER:
        value = preset.get(name)
        if name == "extends" or name not in preset:
            continue
        if not isinstance(value, Mapping):
            lines.append(f"{name}: {text_of(value)}")
        elif value:
            lines += ["", f"{name}:", *(f"  {text_of(key)}: {text_of(item)}" for key, item in value.items())]
    return "\n".join(lines) + "\n"


def _one_line(text: str) -> str:
    return " ".join("".join(letter if letter.isprintable() else " " for letter in clean(text)).split())
