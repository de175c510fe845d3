"""A layer of a preset: the values one file or one setting gives, each with the place it came from.

Layers are flat, so that laying one over another is a dictionary update, and both spellings of a value
(`actor.lr`, `actor_rollout_ref.actor.optim.lr`) land on the same entry.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launcher import paths
from launcher.errors import UserError
from launcher.preset import hydra, versions
from launcher.preset.schema import BY_KEY, FIELDS, GROUPS, Preset
from launcher.text import clean, did_you_mean

FREE = ("health", "env")  # mappings without fields of their own
ROOTS = (
    "actor_rollout_ref", "algorithm", "critic", "custom_reward_function", "data", "distillation", "global_profiler",
    "model_engine", "ray_init", "ray_kwargs", "reward", "reward_model", "sandbox_fusion", "skip", "trainer",
    "transfer_queue",
)  # fmt: skip
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


@dataclass(frozen=True)
class Entry:
    """One value. `source` is what a message calls its place; `spelling` the name it is stored under."""

    value: Any
    source: str
    spelling: str


Layer = dict[tuple[str, ...], Entry]


def from_mapping(data: Mapping[str, Any], source: Any, folder: Path) -> Layer:
    """The layer of a file. `source(path)` names the place of a path in it, such as `my.yaml, line 3`.

    Relative paths are meant from `folder`. Raises UserError for unknown names and groups that are no mapping.
    """
    layer: Layer = {}
    for name, value in data.items():
        where = source((name,))
        if name not in Preset.model_fields:
            raise UserError(f"{where}: unknown name '{clean(str(name))}'{_hint(str(name))}")
        if name in GROUPS or name in FREE or name == "overrides":
            if value is None:
                continue
            if not isinstance(value, Mapping):
                raise UserError(f"{where}: '{name}' is a group of names and values, not {clean(repr(value))}")
        if name in FREE:
            _free(layer, (name,), value, source)
        elif name == "overrides":
            for key, item in value.items():
                place = source((name, key))
                try:
                    prefix, key = hydra.split_key(str(key))
                    _put_key(layer, prefix, key, item, place, folder)
                except UserError as error:
                    raise UserError(f"{place}: {error}") from None
        elif name in GROUPS:
            for field, item in value.items():
                full = f"{name}.{field}"
                if full not in FIELDS:
                    raise UserError(f"{source((name, field))}: unknown field '{clean(full)}'{_hint(full)}")
                _put_field(layer, full, item, source((name, field)), folder)
        else:
            _put_field(layer, name, value, where, folder)
    return layer


def from_setting(text: str, folder: Path) -> Layer:
    """The layer of one `KEY=VALUE`."""
    layer: Layer = {}
    source = f"setting '{clean(text)}'"
    prefix, key, raw = hydra.split(text)
    group, _, rest = key.partition(".")
    if key == "extends":
        raise UserError(
            f"{source}: a setting cannot change what a preset extends; name the other preset instead"
        )
    if group in FREE and rest and not prefix:
        path = (group, *rest.split(".")) if group == "health" else (group, rest)
        layer[path] = Entry(raw if group == "env" else hydra.parse(raw), source, path[-1])
    elif key in FIELDS and not prefix and FIELDS[key].types != (dict[str, Any],):
        _put_field(layer, key, _typed(key, raw), source, folder)
    elif group in ROOTS:
        try:
            known = BY_KEY.get(versions.newest(key))
            _put_key(
                layer, prefix, key, _typed(known.name, raw) if known else hydra.parse(raw), source, folder
            )
        except UserError as error:
            raise UserError(f"{source}: {error}") from None
    else:
        raise UserError(f"{source}: unknown key '{clean(key)}'{_hint(key)}")
    return layer


def nest(layer: Layer) -> dict[str, Any]:
    """The layer as the nested mapping that a file would hold."""
    tree: dict[str, Any] = {}
    for path, entry in layer.items():
        node = tree
        for name in path[:-1]:
            node = node.setdefault(name, {})
        node[entry.spelling] = entry.value
    return tree


def _put_field(layer: Layer, name: str, value: Any, source: str, folder: Path) -> None:
    spec = FIELDS[name]
    if spec.kind and value is not None:
        try:
            value = _located(value, spec.kind == "path or name", folder)
        except UserError as error:
            raise UserError(f"{source}: {name}: {error}") from None
    layer[spec.path] = Entry(value, source, spec.path[-1])


def _put_key(layer: Layer, prefix: str, key: str, value: Any, source: str, folder: Path) -> None:
    """Stores a veRL key: in the field that covers it, else as it is."""
    if key.partition(".")[0] not in ROOTS:
        raise UserError(f"'{clean(key)}' is not a veRL key{did_you_mean(key.partition('.')[0], ROOTS)}")
    newest = versions.newest(key)
    spec = BY_KEY.get(newest)
    if spec is not None:
        ours = {theirs: name for name, theirs in spec.names.items()}
        _put_field(
            layer, spec.name, ours.get(value, value) if isinstance(value, str) else value, source, folder
        )
    else:
        layer["overrides", newest] = Entry(value, source, prefix + newest)


def _free(layer: Layer, path: tuple[str, ...], value: Any, source: Any) -> None:
    for name, item in value.items():
        here = (*path, str(name))
        if isinstance(item, Mapping):
            _free(layer, here, item, source)
        else:
            if path == ("env",) and isinstance(item, (bool, int, float)):
                item = str(item).lower() if isinstance(item, bool) else str(item)
            layer[here] = Entry(item, source((*path, name)), str(name))


def _typed(name: str, raw: str) -> Any:
    """The value of a setting: text stays text where the field takes text (`experiment=1e5`)."""
    value = hydra.parse(raw)
    if str in FIELDS[name].types and not isinstance(value, (str, list, type(None))):
        return raw
    return value


def _located(value: Any, name: bool, folder: Path) -> Any:
    """Absolute paths: `~`, `$NAME` and `$PPO_TUI_CACHE` filled in, relative ones from `folder`."""
    if isinstance(value, list):
        return [_located(item, name, folder) for item in value]
    if not isinstance(value, str) or not value or "://" in value:
        return value
    path = Path(_VARIABLE.sub(_variable, value)).expanduser()
    if name and not value.startswith(("/", "~", ".", "$")) and not (folder / path).exists():
        return value
    return os.path.normpath(folder / path)


def _variable(match: re.Match[str]) -> str:
    name = match[1] or match[2]
    value = str(paths.cache_dir()) if name == "PPO_TUI_CACHE" else os.environ.get(name)
    if value is None:
        raise UserError(f"the environment variable ${name} is not set")
    return value


def _hint(name: str) -> str:
    """The nearest name of a field or group, else where the names are."""
    near = did_you_mean(name, [*FIELDS, *GROUPS, *(spec.key for spec in FIELDS.values() if spec.key)])
    return near or "; fields are grouped as " + ", ".join((*GROUPS, *FREE, "overrides"))
