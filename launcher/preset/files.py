"""Presets on disk: finds and reads them, and merges them with settings."""

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import launcher
from launcher.core import paths
from launcher.core.errors import UserError, of_file
from launcher.core.files import obeyed, require_file
from launcher.core.format import counted
from launcher.core.text import hint_of, near_hint, nearest
from launcher.preset import field_values, layers
from launcher.preset.layers import Layer
from launcher.preset.schema import BY_KEY, FIELDS, Preset, preset_of
from launcher.preset.yaml_text import Place, Where, parse
from launcher.record.info import Edit
from launcher.verl import versions

_ABOVE: list[Where] = [("extends",), ("recipe",)]  # other files
_ABOUT = {*_ABOVE, ("description",), ("needs",)}  # parts of a recipe's file that are not settings
# next to us, in a checkout as in site-packages: another folder of that name may be first on PYTHONPATH
_SHIPPED = Path(launcher.__path__[0]).parent / "presets"
_ORDER = {name: place for place, name in enumerate(FIELDS)}
_DOTTED = re.compile(r"(?<![\w.+/~@-])[a-z]\w*(?:\.\w+)+")
Origin = Literal["shipped", "user", "file", "snapshot"]


class WrongValue(UserError):
    """A refused value of a field; `below`: the value that applies without it, if any; `shown`: the name as typed."""

    def __init__(
        self, what: str, hint: str, place: str, name: str, value: Any, below: Any = None, shown: str = ""
    ) -> None:
        super().__init__(what, hint, place)
        self.name, self.value, self.below, self.shown = name, value, below, shown or name


@dataclass(frozen=True)
class LoadedPreset:
    """A preset: layers of values, top first, with the content of its file.

    `read` collects errors without raising: `refused` has the errors of names, groups, `recipe` and `extends`, and under
    () why the file is unreadable. `recipe`, `parent`: what the file uses and extends. `places`: the places of each
    value in the file, for `line_of`.
    """

    name: str
    path: Path | None  # None for a snapshot
    origin: Origin
    layers: tuple[Layer, ...]
    recipe: Layer = field(default_factory=dict)
    parent: Layer = field(default_factory=dict)
    raw: Mapping[str, Any] = field(default_factory=dict)
    places: Mapping[Where, list[Where]] = field(default_factory=dict)
    refused: Mapping[Where, UserError] = field(default_factory=dict)
    line_of: Place = str

    @functools.cached_property
    def layer(self) -> Layer:
        """All set values, with their sources."""
        return layers.stack(self.layers)

    @functools.cached_property
    def base(self) -> Layer:
        """The values set below the file."""
        return layers.over(self.recipe, self.parent)

    @functools.cached_property
    def preset(self) -> Preset:
        """The values as an object for code. Raises WrongValue for the first refused one."""
        if wrong := [where for where, entry in self.layer.items() if not _allowed(where, entry.value)]:
            ordered = sorted(wrong, key=lambda where: _ORDER.get(".".join(where), _ORDER["env"]))
            raise _refusal(self.layer, ordered, self.layers)
        return preset_of(layers.nest(self.layer))

    @property
    def problem(self) -> str | None:
        """Why the file is unreadable."""
        return str(self.refused[()]) if () in self.refused else None

    @functools.cached_property
    def errors(self) -> Mapping[Where, str]:
        """A sentence per refused value of the file."""
        refused = {where: str(error) for where, error in self.refused.items() if where}
        found = refused | field_values.errors(self.layers[0]) | field_values.unhealthy(self.raw.get("health"))
        return dict(sorted(found.items(), key=lambda item: _ABOVE.index(item[0]) if item[0] in _ABOVE else -1))

    @functools.cached_property
    def values(self) -> Mapping[Where, Any]:
        """Every set value: ("actor", "lr"), ("overrides", "key"), ("usual", "actor.lr")."""
        return {where: entry.value for where, entry in self.layer.items()}

    @property
    def hides_shipped(self) -> bool:
        """Whether it is a user's preset from an older ppo-tui that hides the shipped one of this name."""
        return self.origin == "user" and self.name in shipped()

    def snapshot(self) -> dict[str, object]:
        """All set values, as a file's mapping; `restore` reads it back."""
        return layers.nest(self.layer)

    def in_typed_names(self, text: str) -> str:
        """The text with each setting's name as typed by the user, or its field's."""

        def name(match: re.Match[str]) -> str:
            spec = FIELDS.get(match[0]) or BY_KEY.get(versions.newest(match[0]))
            entry = (self.layer.get(("overrides", spec.key)) or self.layer.get(spec.path)) if spec else None
            return match[0] if spec is None else (entry and entry.own and entry.typed) or spec.name

        return _DOTTED.sub(name, text)

    def place_of(self, key: str) -> str | None:
        """The place that sets a preset field or veRL key: `my.yaml, line 3`; None without one."""
        spec = BY_KEY.get(key) or FIELDS.get(key)
        places = [spec.path] if spec else [("overrides", f"{plus}{key}") for plus in ("", "+", "++")]
        return next((self.layer[place].source for place in places if place in self.layer), None)


@dataclass(frozen=True)
class Summary:
    """A line of the list of presets; `error`: why it is unreadable."""

    name: str
    origin: Origin
    path: Path
    description: str = ""
    needs: str = ""
    error: str | None = None
    shadows: bool = False  # a preset of yours in the place of a shipped one
    fits: bool | None = None  # this machine, once `library.suited` has compared; None where it states no needs


def load(name_or_path: str, settings: Sequence[str] = ()) -> LoadedPreset:
    """The preset with this name or file, with `KEY=VALUE` settings over it; a later setting wins.

    Names are looked up among the user's presets, then the shipped ones; text with `/` or ending in `.yaml` is a file.
    Relative paths in settings start in the working directory. Raises UserError.
    """
    path, origin = find(name_or_path)
    return with_settings(read(path, origin=origin), settings)


def with_settings(preset: str | LoadedPreset, settings: Sequence[str]) -> LoadedPreset:
    """A preset, loaded if it is a name or path, with settings over it in order. Raises its first error."""
    if isinstance(preset, str):
        return load(preset, settings)
    stacked = _sound(preset)
    for setting in settings:
        own = layers.from_setting(setting, Path.cwd())
        recipe = own.get(("recipe",))  # overrides earlier settings; later ones override it
        stacked = (own, *(_recipe(recipe.value, recipe.source) if recipe else ()), *stacked)
    found = replace(preset, layers=stacked)
    _ = found.preset  # raises for a value that is not allowed
    return found


def find(name_or_path: str) -> tuple[Path, Origin]:
    """The file of a preset's name or path, and its origin. Raises UserError, also for a named one of another user."""
    path, origin = _find(name_or_path, Path.cwd())
    return obeyed(path) if origin == "user" else path, origin


def read_text(path: Path) -> str:
    """The unchanged text of a preset file. Raises UserError."""
    try:
        return path.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise of_file(f"cannot read {path}", error) from None


def load_text(path: Path, text: str, settings: Sequence[str] = ()) -> LoadedPreset:
    """The preset of a file `path`, which need not exist, with this text. Raises UserError."""
    return with_settings(read(path, text), settings)


def restore(name: str, snapshot: Mapping[str, Any], settings: Sequence[str] = ()) -> LoadedPreset:
    """A preset from a `LoadedPreset.snapshot` with further settings, for a resumed run."""
    return of_layer(snapshot_layer(name, snapshot), name, settings)


def snapshot_layer(name: str, snapshot: Mapping[str, Any]) -> Layer:
    """The values of a snapshot, for several presets by `of_layer`. Raises UserError."""
    return layers.from_mapping(snapshot, lambda _: f"snapshot of {name}", Path.cwd())


def of_layer(layer: Layer, name: str = "", settings: Sequence[str] = ()) -> LoadedPreset:
    """A preset of values that no user chose here. Raises UserError for a refused one."""
    return with_settings(LoadedPreset(name, None, "snapshot", (layers.given(layer),)), settings)


def shipped() -> dict[str, Path]:
    """ppo-tui's own presets, by name."""
    return _presets(_SHIPPED)


def users() -> dict[str, Path]:
    """The user's own presets, by name."""
    return _presets(paths.presets_dir())


def available() -> dict[str, Path]:
    """Every named preset; the user's shadow the shipped ones."""
    return {**shipped(), **users()}


def recipes() -> dict[str, Path]:
    """The recipes for presets, by name; the user's shadow the shipped ones."""
    return {name: path for each in (_SHIPPED, paths.presets_dir()) for name, path in _presets(each / "recipes").items()}


def recipe_layer(name: Any, source: str) -> Layer:
    """The layer of a recipe; empty for None. Raises UserError for an unknown name, given at `source`."""
    return layers.stack(_recipe(name, source))


def changed_from_base(name_or_path: str) -> tuple[str, list[Edit]]:
    """The preset that a preset extends, and the values that it changes; empty without one. Raises UserError."""
    found = load(name_or_path)
    base = found.parent
    edits = [
        Edit(
            ".".join(where[1:] if where[0] == "overrides" else where),
            base[where].value if where in base else None,
            entry.value,
        )
        for where, entry in found.layer.items()
        if where not in _ABOUT and (where not in base or base[where].value != entry.value)
    ]
    return str(found.raw.get("extends") or ""), edits if base else []


def recipe_about(name: str) -> str:
    """The description of a recipe; for an unreadable one, its error."""
    try:
        return str(parse(_own_or_shipped(recipes()[name]))[0].get("description") or "")
    except UserError as error:
        return str(error)


def summary(name_or_path: str) -> Summary:
    """A line of the list of presets. An unreadable preset is listed with its error."""
    path, origin = _find(name_or_path, Path.cwd())
    shadows = origin == "user" and path.stem in shipped()
    try:
        preset = load(name_or_path).preset
    except UserError as error:
        return Summary(path.stem, origin, path, error=str(error), shadows=shadows)
    return Summary(path.stem, origin, path, preset.description, preset.needs, shadows=shadows)


def read(path: Path, text: str | None = None, origin: Origin = "file", below: tuple[Path, ...] = ()) -> LoadedPreset:
    """The preset of a file, or of `text` instead; `below`: the files that extend it. Never raises."""
    try:
        data, place = parse(path, text)
    except UserError as error:
        return LoadedPreset(path.stem, path, origin, ({},), refused={(): error})
    return of_data(path, data, place, origin, below)


def of_data(
    path: Path, data: Mapping[Any, Any], place: Place, origin: Origin = "file", below: tuple[Path, ...] = ()
) -> LoadedPreset:
    """As `read`, for a parsed file; `place` has the line of each value."""
    own, places, refused = layers.read(data, place, path.parent)
    recipe: tuple[Layer, ...] = ()
    parent: tuple[Layer, ...] = ()
    try:
        recipe = _recipe(data.get("recipe"), place(("recipe",)))
    except UserError as error:
        refused["recipe",] = error
    try:
        parent = _extended(path, data, place, below)
    except UserError as error:
        refused["extends",] = error
    own = layers.given(own) if path.is_relative_to(_SHIPPED) else own
    stacked = (own, *recipe, *parent)
    above, under = layers.stack(recipe), layers.stack(parent)
    return LoadedPreset(path.stem, path, origin, stacked, above, under, data, places, refused, place)


def _sound(preset: LoadedPreset) -> tuple[Layer, ...]:
    """The layers of a preset, top first. Raises its first error."""
    for error in preset.refused.values():
        raise error
    return preset.layers


def _recipe(name: Any, source: str) -> tuple[Layer, ...]:
    if name is None:
        return ()
    known = recipes()
    if not isinstance(name, str) or name not in known:
        hint = near_hint(str(name), known, f"use {', '.join(known)}")
        raise UserError(f"no recipe named {name!r}", hint, source)
    found = _sound(read(_own_or_shipped(known[name])))
    return tuple({where: entry for where, entry in layer.items() if where not in _ABOUT} for layer in found)


def _own_or_shipped(recipe: Path) -> Path:
    return recipe if recipe.is_relative_to(_SHIPPED) else obeyed(recipe)


def _extended(path: Path, data: Mapping[Any, Any], place: Place, below: tuple[Path, ...]) -> tuple[Layer, ...]:
    parent = data.get("extends")
    if parent is None:
        return ()
    source, real = place(("extends",)), path.resolve()
    if not isinstance(parent, str):
        raise UserError(f"extends is {parent!r}", "use the name of a preset, or a file", source)
    try:
        base, origin = _find(parent, path.parent, asking=real)
        base = obeyed(base) if origin == "user" else base
    except UserError as error:
        raise error.at(source) from None
    if (again := base.resolve()) in (below := (*below, real)):
        chain = " extends ".join(each.name for each in (*below[below.index(again) :], again))
        raise UserError(f"{base}: circular extends: {chain}")
    return _sound(read(base, below=below))


def _presets(folder: Path) -> dict[str, Path]:
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}


def _find(name: str, folder: Path, asking: Path | None = None) -> tuple[Path, Origin]:
    """The file of a preset. A preset that extends its own name (`asking`) means the hidden one."""
    if "/" in name or name.endswith((".yaml", ".yml")):
        path = (folder / layers.home(name, "preset")).absolute()
        require_file(path, "preset", "'ppo-tui preset list' lists those with a name")
        return path, "file"
    places: tuple[tuple[dict[str, Path], Origin], ...] = ((users(), "user"), (shipped(), "shipped"))
    for presets, origin in places:
        if name in presets and presets[name].resolve() != asking:
            return presets[name], origin
    known = available()
    listed = "'ppo-tui preset list' lists them; a file needs its path, such as ./my.yaml"
    raise UserError(f"no preset named {name!r}", near_hint(name, known, listed))


def _allowed(path: tuple[str, ...], value: Any) -> bool:
    spec = FIELDS.get(".".join(path))
    return spec.allows(value) if spec else path[0] != "env" or isinstance(value, str)


def _refusal(layer: Layer, wrong: Sequence[tuple[str, ...]], stacked: Sequence[Layer]) -> WrongValue:
    """The first error in words: the place, the value, the allowed values."""
    entry, name = layer[wrong[0]], ".".join(wrong[0])
    spec = FIELDS.get(name)
    allowed = spec.allowed if spec else "text"  # a value of `env`
    near = nearest(entry.value, spec.choices) if spec and isinstance(entry.value, str) else None
    others = len(wrong) - 1
    more = f" (and {counted(others, 'more error')})" if others else ""
    shown = entry.typed or name
    what = f"{shown} is {entry.value!r}, which is not allowed{more}"
    place = "" if entry.source == layers.setting(shown) else entry.source  # the name is the place
    values = (each[wrong[0]].value for each in stacked if wrong[0] in each)
    below = next((value for value in values if _allowed(wrong[0], value)), None)
    return WrongValue(what, hint_of(near, f"use {allowed}"), place, name, entry.value, below, shown)
