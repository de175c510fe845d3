"""Presets on disk: find them, read them, lay them and the settings over one another."""

from __future__ import annotations

import functools
import importlib.resources
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from launcher import paths
from launcher.errors import UserError
from launcher.preset import layers
from launcher.preset.layers import Layer
from launcher.preset.schema import FIELDS, Preset
from launcher.text import clean, did_you_mean

Origin = Literal["shipped", "user", "file", "snapshot"]


@dataclass(frozen=True)
class LoadedPreset:
    """A preset with everything it extends and every setting laid over it."""

    name: str
    path: Path | None  # None for a snapshot
    origin: Origin
    preset: Preset
    layer: Layer  # what was set, by whom

    def snapshot(self) -> dict[str, Any]:
        """What was set, as the mapping a file would hold; `restore` reads it back."""
        return layers.nest(self.layer)

    def source(self, name: str) -> str | None:
        """Where the value of a field (`actor.lr`) comes from, or None for a default."""
        entry = self.layer.get(tuple(name.split(".")))
        return entry.source if entry else None


@dataclass(frozen=True)
class Summary:
    """A line of the list of presets; `error` says why one cannot be read."""

    name: str
    origin: Origin
    path: Path
    description: str = ""
    needs: str = ""
    error: str | None = None


def load(name_or_path: str, settings: Sequence[str] = ()) -> LoadedPreset:
    """The preset of that name or file with `KEY=VALUE` settings over it; a later setting wins.

    Names are looked up among the user's presets, then the shipped ones; text with `/` or ending in `.yaml` is
    a file. Relative paths in settings are meant from the working directory. Raises UserError.
    """
    path, origin = _find(name_or_path, Path.cwd())
    layer = _read(path, ())
    return _finish(path.stem, path, origin, layer, settings)


def restore(name: str, snapshot: Mapping[str, Any], settings: Sequence[str] = ()) -> LoadedPreset:
    """A preset from what `LoadedPreset.snapshot` gave, with further settings: a run that is resumed."""
    layer = layers.from_mapping(snapshot, lambda place: f"snapshot of {name}: {_dotted(place)}", Path.cwd())
    return _finish(name, None, "snapshot", layer, settings)


def _finish(
    name: str, path: Path | None, origin: Origin, layer: Layer, settings: Sequence[str]
) -> LoadedPreset:
    for setting in settings:
        layer = {**layer, **layers.from_setting(setting, Path.cwd())}
    return LoadedPreset(name, path, origin, _validated(layer), layer)


def shipped() -> dict[str, Path]:
    """The presets that come with ppo-tui, by name."""
    return _presets(Path(str(importlib.resources.files("presets"))))


def users() -> dict[str, Path]:
    """The user's own presets, by name."""
    return _presets(paths.presets_dir())


def available() -> dict[str, Path]:
    """Every preset that has a name; the user's shadow the shipped ones."""
    return {**shipped(), **users()}


def summary(name_or_path: str) -> Summary:
    """What the list of presets shows. A preset that cannot be read is listed with its error."""
    path, origin = _find(name_or_path, Path.cwd())
    try:
        preset = load(name_or_path).preset
    except UserError as error:
        return Summary(path.stem, origin, path, error=str(error))
    return Summary(path.stem, origin, path, preset.description, preset.needs)


def _presets(folder: Path) -> dict[str, Path]:
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}


def _find(name: str, folder: Path, not_this: Path | None = None) -> tuple[Path, Origin]:
    if "/" in name or name.endswith((".yaml", ".yml")):
        path = (folder / Path(name).expanduser()).absolute()
        if not path.is_file():
            raise UserError(f"there is no preset file {path}")
        return path, "file"
    own = users().get(name)
    if own and own != not_this:
        return own, "user"
    ours = shipped().get(name)
    if ours and ours != not_this:
        return ours, "shipped"
    known = available()
    raise UserError(
        f"there is no preset '{clean(name)}'{did_you_mean(name, known)}; there are: {', '.join(known)}; "
        "a file is named with its path"
    )


def _read(path: Path, below: tuple[Path, ...]) -> Layer:
    """The file's layer on top of what it extends. `below` is the chain that led here."""
    if path in below:
        chain = " extends ".join(each.name for each in (*below[below.index(path) :], path))
        raise UserError(f"{path}: presets extend each other in a circle: {chain}")
    data, source = _parse(path)
    parent = data.get("extends")
    layer: Layer = {}
    if parent is not None:
        if not isinstance(parent, str):
            raise UserError(
                f"{source(('extends',))}: extends names a preset or a file, not {clean(repr(parent))}"
            )
        try:
            base, _ = _find(parent, path.parent, not_this=path)
        except UserError as error:
            raise UserError(f"{source(('extends',))}: {error}") from None
        layer = _read(base, (*below, path))
    return {**layer, **layers.from_mapping(data, source, path.parent)}


def _parse(path: Path) -> tuple[dict[str, Any], Callable[[tuple[Any, ...]], str]]:
    """The file's mapping and a function that names the place of a path in it."""
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        document = _yaml().load(path.read_text(encoding="utf-8"))
    except MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UserError(
            f"{path}{line}: not valid YAML: {clean(error.problem or str(error)).splitlines()[0]}"
        ) from None
    except (YAMLError, UnicodeDecodeError, ValueError) as error:
        raise UserError(f"{path}: not a YAML text: {clean(str(error)).splitlines()[0]}") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    if document is not None and not isinstance(document, Mapping):
        raise UserError(f"{path}: a preset is a mapping of names and values")
    return _plain(document or {}), functools.partial(_place, path, document or {})


@functools.cache
def _yaml() -> Any:
    from ruamel.yaml import YAML

    return YAML(typ="rt")  # round trip: it alone knows the lines, and the editor keeps the comments


def _place(path: Path, document: Any, place: tuple[Any, ...]) -> str:
    node, line = document, None
    for name in place:
        try:
            line = node.lc.key(name)[0]
            node = node[name]
        except (AttributeError, KeyError, TypeError):
            break
    return str(path) if line is None else f"{path}, line {line + 1}"


def _plain(value: Any) -> Any:
    """Python's own types for what ruamel reads, so that nothing downstream depends on it."""
    if isinstance(value, Mapping):
        return {_plain(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    return value if value is None else str(value)  # dates and tags are text to us


def _validated(layer: Layer) -> Preset:
    from pydantic import ValidationError

    try:
        return Preset.model_validate(layers.nest(layer))
    except ValidationError as error:
        raise UserError(_sentence(layer, error.errors(include_url=False))) from None


def _sentence(layer: Layer, errors: Sequence[Any]) -> str:
    """The first error for a person: where, what, what is allowed."""
    first = errors[0]
    place = tuple(str(part) for part in first["loc"])
    name = next((_dotted(place[:size]) for size in (1, 2) if _dotted(place[:size]) in FIELDS), _dotted(place))
    entry = layer.get(tuple(name.split("."))) or layer.get(place)
    where = f"{entry.source}: " if entry else ""
    value = clean(repr(entry.value if entry else first.get("input")))
    allowed = FIELDS[name].allowed if name in FIELDS else first["msg"]
    others = len({error["loc"][:2] for error in errors}) - 1
    more = f" (and {others} more)" if others else ""
    return f"{where}{name} is {value}; allowed: {allowed}{more}"


def _dotted(place: Sequence[Any]) -> str:
    return ".".join(str(part) for part in place)
