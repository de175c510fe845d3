"""A layer of a preset: the values of one file or setting, each with its place.

Layers are flat, so that merging is a dictionary update, and both spellings of a value (`actor.lr`,
`actor_rollout_ref.actor.optim.lr`) are one entry.
"""

import functools
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_origin

from launcher import inside
from launcher.core import paths
from launcher.core.errors import UserError
from launcher.core.text import hint_of, near_hint, nearest
from launcher.preset import environment
from launcher.preset.schema import BY_KEY, FIELDS, GROUPS, ORDER, TABLES
from launcher.preset.yaml_text import Place, Where
from launcher.verl import hydra, versions

LISTED = "'ppo-tui preset edit PRESET' lists the fields"
FREE = ("health", "usual", "env", "sweep")  # mappings without fields of their own
MAPPINGS = (*GROUPS, *FREE, "overrides")
ROOTS: tuple[str, ...] = tuple(TABLES["roots"])
"""The first parts of veRL's keys."""

_OURS: dict[str, Callable[[], str]] = {
    "PPO_TUI_CACHE": lambda: str(paths.cache_dir()),  # ppo-tui's files: the toy's model and data
    "PPO_TUI_REWARDS": lambda: str(inside.BY_PATH),  # reward functions it has
    "PPO_TUI_TOOLS": lambda: str(inside.BY_PATH),  # tools it has
}
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


@dataclass(frozen=True)
class LayerEntry:
    """One value. `source`: its place for messages. `spelling`: its name in a file.

    `typed`: the veRL key that a user wrote for a field. `own`: False for values of ppo-tui's own files and of a stored
    run, which no user chose here.
    """

    value: Any
    source: str
    spelling: str
    typed: str = ""
    own: bool = True


Layer = dict[Where, LayerEntry]


def from_mapping(data: Mapping[Any, Any], place: Place, folder: Path) -> Layer:
    """The layer of a file's mapping; relative paths start in `folder`.

    Raises UserError for the first value that is refused: unknown names, groups that are not a mapping, secrets.
    """
    layer, _, refused = read(data, place, folder)
    for error in refused.values():
        raise error
    return layer


def read(
    data: Mapping[Any, Any], place: Place, folder: Path
) -> tuple[Layer, dict[Where, list[Where]], dict[Where, UserError]]:
    """A file's values, the places of each (two for a key in both spellings), and refusals by place.

    Never raises: a wrong value does not hide the others.
    """
    layer: Layer = {}
    places: dict[Where, list[Where]] = {}
    refused: dict[Where, UserError] = {}
    for path, value in _values(data):
        at: Where = tuple(map(str, path))
        own: Layer = {}
        try:
            _put(own, path, value, place, folder)
        except UserError as error:
            places.setdefault(at, []).append(at)
            refused[at] = error
            continue
        layer |= own
        for where in own:
            places.setdefault(where, []).append(where if where[0] in FREE else at)
    return layer, places, refused


def _values(data: Mapping[Any, Any]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    for name, value in data.items():
        if name in MAPPINGS and isinstance(value, Mapping):
            yield from (((name, key), item) for key, item in value.items())
        else:
            yield (name,), value


def _put(layer: Layer, path: tuple[Any, ...], value: Any, place: Place, folder: Path) -> None:
    """Stores one value of a file."""
    name, source = path[0], place(path)
    if name not in ORDER:
        raise UserError(f"unknown name {str(name)!r}", lambda: _hint(str(name)), source)
    if len(path) > 1 and name in FREE:
        _put_free(layer, (name,), {path[1]: value}, place)
    elif len(path) > 1 and name == "overrides":
        prefix, key = hydra.split_key(str(path[1]), source)
        _put_key(layer, prefix, key, value, source, folder)
    elif len(path) > 1:
        _put_field(layer, f"{name}.{path[1]}", value, source, folder)
    elif name not in MAPPINGS:
        _put_field(layer, name, value, source, folder)
    elif value is not None:  # `env:` with nothing below it
        raise UserError(f"'{name}' is {value!r}", "use a mapping of names and values", source)


def setting(key: str) -> str:
    """The place of a `KEY=VALUE` setting, for messages."""
    return f"setting {key}"


def from_setting(text: str, folder: Path) -> Layer:
    """The layer of one `KEY=VALUE`; relative paths start in `folder`. Raises UserError."""
    layer: Layer = {}
    prefix, key, raw = hydra.split(text)
    source = setting(key)  # without the value, which may be a secret
    group, _, rest = key.partition(".")
    if key == "extends":
        raise UserError("extends can only be set in a preset file", "use the other preset instead", source)
    if prefix == "" and group in FREE and rest:
        path = (group, rest) if group == "env" else tuple(key.split("."))
        value = raw if group == "env" else hydra.parse(raw)
        if group == "env":
            environment.check(rest, raw, source)
        elif group == "usual":
            path = "usual", usual_name(rest, value, source)
        else:
            environment.check_setting(key, value, source)
        layer[path] = LayerEntry(value, source, path[-1])
    elif prefix == "" and key in FIELDS and key not in MAPPINGS:
        _put_field(layer, key, _typed(key, raw), source, folder)
    elif (group in ROOTS and rest) or hydra.is_group(key):
        return from_override(text, folder)
    elif key in MAPPINGS:
        raise UserError(f"'{key}' is a group", "set a value in it, such as actor.lr=1e-6")
    else:
        raise UserError(f"unknown key {key!r}", _hint(key))
    return layer


def from_override(text: str, folder: Path) -> Layer:
    """The layer of one override in veRL's form, also for a key of a veRL fork. Raises UserError."""
    layer: Layer = {}
    if text.startswith("~"):
        (prefix, key), value = hydra.split_key(text.partition("=")[0], "setting"), None
    else:
        prefix, key, raw = hydra.split(text)
        known = BY_KEY.get(versions.newest(key))
        value = _typed(known.name, raw) if known else hydra.parse(raw)
    _put_key(layer, prefix, key, value, f"setting {key}", folder)
    return layer


def stack(layers: Iterable[Layer]) -> Layer:
    """Merges layers; earlier ones override later ones, and are read first."""
    return functools.reduce(lambda base, top: over(top, base), reversed(list(layers)), Layer())


def over(top: Layer, base: Layer) -> Layer:
    """Merges `top` over `base`. A value replaces a mapping with its name, and vice versa."""
    covered = {("overrides", FIELDS[".".join(path)].key) for path in top if ".".join(path) in FIELDS}
    kept = {
        path: entry
        for path, entry in base.items()
        if path not in top
        and path not in covered
        and not any(path[: len(new)] == new or new[: len(path)] == path for new in top if new[0] in FREE)
    }
    return {**kept, **top}


def given(layer: Layer) -> Layer:
    """The layer with values that count as not chosen or spelled by a user."""
    return {where: replace(entry, own=False, typed="") for where, entry in layer.items()}


def nest(layer: Layer) -> dict[str, object]:
    """The layer as a file's nested mapping."""
    tree: dict[str, Any] = {}
    for path, entry in layer.items():
        node = tree
        for name in path[:-1]:
            node = node.setdefault(name, {})
        node[entry.spelling] = entry.value
    return tree


def _put_field(layer: Layer, name: str, value: Any, source: str, folder: Path, typed: str = "") -> None:
    spec = FIELDS.get(name)
    if spec is None:
        raise UserError(f"unknown field {name!r}", lambda: _hint(name), source)
    if isinstance(value, str) and str not in spec.types and any(get_origin(kind) is list for kind in spec.types):
        value = [value]  # `loggers: wandb`
    if isinstance(value, float) and value.is_integer() and int in spec.types and float not in spec.types:
        value = int(value)  # `1e1`
    environment.check_setting(name, value, source)
    if spec.key and isinstance(value, str) and hydra.refers(value) and str not in spec.types:
        layer["overrides", spec.key] = LayerEntry(value, source, spec.plus + spec.key, typed)  # veRL fills it in
        return
    if spec.kind and value is not None:
        value = _located(value, spec.kind == "path or name", folder, f"{source}: {name}")
    layer[spec.path] = LayerEntry(value, source, spec.path[-1], typed)


def _put_key(layer: Layer, prefix: str, key: str, value: Any, source: str, folder: Path) -> None:
    """Stores a veRL key in its field, otherwise as an override."""
    _, env, variable = key.rpartition(".env_vars.")
    if env:
        environment.check(variable, str(value), source)
    environment.check_setting(key, value, source)
    newest = versions.newest(key)
    spec = BY_KEY.get(newest)
    as_it_is = prefix == "~" or (
        prefix == "++" and spec is not None and (value is None or not spec.allows(spec.from_verl(value)))
    )
    if spec is not None and not as_it_is:
        _put_field(layer, spec.name, spec.from_verl(value), source, folder, key)
    else:
        layer["overrides", prefix.replace("+", "") + newest] = LayerEntry(value, source, prefix + newest)


def _put_free(layer: Layer, path: tuple[str, ...], value: Mapping[Any, Any], place: Place) -> None:
    for name, item in value.items():
        here = (*path, str(name))
        source = place((*path, name))
        if isinstance(item, Mapping) and path[0] != "env":
            _put_free(layer, here, item, place)
            continue
        if path[0] == "usual":
            here = "usual", usual_name(".".join(here[1:]), item, source)
        elif path[0] == "env":
            if isinstance(item, (bool, int, float)):
                item = str(item).lower() if isinstance(item, bool) else str(item)
            environment.check(here[-1], item if isinstance(item, str) else "", source)
        else:
            environment.check_setting(".".join(here), item, source)
        layer[here] = LayerEntry(item, source, here[-1])


def declarable() -> list[str]:
    """Fields whose usual range a preset can declare."""
    return [name for name, spec in FIELDS.items() if spec.key and {int, float} & {*spec.types}]


def usual_name(name: str, value: Any, source: str) -> str:
    """The field for a declared usual range, by its name or veRL key. Raises UserError for others."""
    spec = FIELDS.get(name) or BY_KEY.get(versions.newest(name.lstrip("+")))
    source = "" if source == setting(f"usual.{name}") else source  # the message names it
    if spec is None or spec.name not in declarable():
        hint = functools.partial(near_hint, name, declarable())
        raise UserError(f"usual: {name!r} is not a field with a number", hint, source)
    ends = value if isinstance(value, list) else []
    wrong = len(ends) != 2 or not all(type(end) in (int, float) and math.isfinite(end) for end in ends)
    if value is not None and (wrong or ends[0] > ends[1]):
        raise UserError(f"usual.{spec.name} is {value!r}", "use the lowest and the highest value: [LOW, HIGH]", source)
    return spec.name


def _typed(name: str, raw: str) -> Any:
    """The value of a setting: text stays text in a text field (`trainer.experiment=1e5`)."""
    value = hydra.parse(raw)
    if str in FIELDS[name].types and not isinstance(value, (str, list, type(None))):
        return raw
    return value


def _located(value: Any, name: bool, folder: Path, source: str) -> Any:
    """Absolute paths: expands `~`, `$NAME` and our own folders; relative paths start in `folder`.

    `name`: the value may be a name instead: `Qwen/Qwen2.5-0.5B-Instruct`, `python3`.
    """
    if isinstance(value, list):
        return [_located(item, name, folder, source) for item in value]
    if not isinstance(value, str) or not value or "://" in value:
        return value

    def variable(match: re.Match[str]) -> str:
        found = match[1] or match[2]
        text = _OURS[found]() if found in _OURS else os.environ.get(found)
        if text is None:
            raise UserError(f"environment variable ${found} is not set", f"export {found}=...", source)
        return text

    path = folder / home(_VARIABLE.sub(variable, value), source)
    if name and not value.startswith(("/", "~", ".", "$")) and not os.path.exists(path):  # noqa: PTH110 (never raises)
        return value
    return os.path.normpath(path)


def home(text: str, source: str) -> Path:
    """`text` as a path, with a leading `~` expanded."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise UserError(f"no home folder found for {text!r}", "use the whole path", source) from None


def near_name(name: str) -> str | None:
    """The field or group that a wrong name probably means, by name, veRL key or meaning."""
    group, _, wanted = name.rpartition(".")
    fields = {each: spec.help for each, spec in FIELDS.items()}
    near = next((key for key in BY_KEY if key.endswith(f".{name}")), None)
    if near is None and group in GROUPS:
        beside = {each.removeprefix(f"{group}."): text for each, text in fields.items() if each.startswith(f"{group}.")}
        inside = nearest(wanted, beside)
        return inside and f"{group}.{inside}"
    near = near or nearest(name, {**fields, **dict.fromkeys([*GROUPS, *BY_KEY], "")})
    return BY_KEY[near].name if near in BY_KEY else near


def _hint(name: str) -> str:
    """A hint with the probable name, otherwise with the place of the list."""
    listed = f"use one of {', '.join(ORDER)}"
    return hint_of(near_name(name)) or (LISTED if name.rpartition(".")[0] in GROUPS else listed)
