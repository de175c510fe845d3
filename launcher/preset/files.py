"""Presets on disk: find them, read them, merge them with the settings."""

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import launcher
from launcher.core import paths
from launcher.core.errors import UserError, of_file
from launcher.core.files import obeyed, require_file
from launcher.core.format import counted
from launcher.core.text import clean, hint_of, near_hint, nearest
from launcher.core.yaml_bounds import mending, refusal
from launcher.preset import layers
from launcher.preset.layers import Layer, Place
from launcher.preset.schema import BY_KEY, FIELDS, Preset, preset_of, value_of
from launcher.record.info import Edit
from launcher.verl import versions

_ABOUT = {("extends",), ("recipe",), ("description",), ("needs",)}  # of a recipe's file, not settings
# beside us, in a checkout as in site-packages: another folder of that name may be first on PYTHONPATH
_SHIPPED = Path(launcher.__path__[0]).parent / "presets"
_ORDER = {name: place for place, name in enumerate(FIELDS)}
_DOTTED = re.compile(r"(?<![\w.+/~@-])[a-z]\w*(?:\.\w+)+")
Origin = Literal["shipped", "user", "file", "snapshot"]


class WrongValue(UserError):
    """A refused value of a field; `below`: what would apply without it, if anything; `shown`: the name as typed."""

    def __init__(
        self, what: str, hint: str, place: str, name: str, value: Any, below: Any = None, shown: str = ""
    ) -> None:
        super().__init__(what, hint, place)
        self.name, self.value, self.below, self.shown = name, value, below, shown or name


@dataclass(frozen=True)
class LoadedPreset:
    """A preset with everything it extends and every setting laid over it."""

    name: str
    path: Path | None  # None for a snapshot
    origin: Origin
    preset: Preset
    layer: Layer  # what was set, and by whom

    @property
    def hides_shipped(self) -> bool:
        """Whether it is a preset of the user's from an older ppo-tui that hides the shipped one of the same name."""
        return self.origin == "user" and self.name in shipped()

    def snapshot(self) -> dict[str, object]:
        """All set values, as the mapping that a file would hold; `restore` reads it back."""
        return layers.nest(self.layer)

    def values(self) -> dict[tuple[str, ...], Any]:
        """The values that were set, by their paths: ("actor", "lr"), ("overrides", "+key"), ("usual", "actor.lr")."""
        fields = {spec.path: value_of(self.preset, spec) for spec in FIELDS.values() if spec.path in self.layer}
        usual = {where: entry.value for where, entry in self.layer.items() if where[0] == "usual"}
        return {**fields, **usual, **{("overrides", key): value for key, value in self.preset.overrides.items()}}

    def in_typed_names(self, text: str) -> str:
        """The text in which each setting has the name that the user typed, or that of its field."""

        def name(match: re.Match[str]) -> str:
            spec = FIELDS.get(match[0]) or BY_KEY.get(versions.newest(match[0]))
            entry = (self.layer.get(("overrides", spec.key)) or self.layer.get(spec.path)) if spec else None
            return match[0] if spec is None else (entry and entry.own and entry.typed) or spec.name

        return _DOTTED.sub(name, text)

    def place_of(self, key: str) -> str | None:
        """The place that sets a preset field or veRL key: `my.yaml, line 3`; None if nothing does."""
        spec = BY_KEY.get(key) or FIELDS.get(key)
        places = [spec.path] if spec else [("overrides", f"{plus}{key}") for plus in ("", "+", "++")]
        return next((self.layer[place].source for place in places if place in self.layer), None)


@dataclass(frozen=True)
class Summary:
    """A line of the list of presets; `error` says why one cannot be read."""

    name: str
    origin: Origin
    path: Path
    description: str = ""
    needs: str = ""
    error: str | None = None
    shadows: bool = False  # a preset of yours in the place of a shipped one
    fits: bool | None = None  # this machine, once `library.suited` has compared; None where it states no needs


def load(name_or_path: str, settings: Sequence[str] = ()) -> LoadedPreset:
    """The preset of that name or file with `KEY=VALUE` settings over it; a later setting wins.

    Names are looked up among the user's presets, then the shipped ones; text with `/` or ending in `.yaml` is a file.
    Relative paths in settings start in the working directory. Raises UserError.
    """
    path, origin = find(name_or_path)
    return _load(path.stem, path, origin, _chain(path), settings)


def with_settings(preset: str | LoadedPreset, settings: Sequence[str]) -> LoadedPreset:
    """A preset, loaded when it is a name or path, with settings over it. Raises UserError."""
    if isinstance(preset, str):
        return load(preset, settings)
    return _load(preset.name, preset.path, preset.origin, [preset.layer], settings)


def find(name_or_path: str) -> tuple[Path, Origin]:
    """The file of a preset's name or path, and its origin. Raises UserError, also for a named one of other users."""
    path, origin = _find(name_or_path, Path.cwd())
    return obeyed(path) if origin == "user" else path, origin


def read_text(path: Path) -> str:
    """The text of a preset file as it is. Raises UserError."""
    try:
        return path.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise of_file(f"cannot read {path}", error) from None


def load_text(path: Path, text: str, settings: Sequence[str] = ()) -> LoadedPreset:
    """The preset that the file `path` would be with this text; it need not be there yet. Raises UserError."""
    return _load(path.stem, path, "file", _chain(path, text), settings)


def restore(name: str, snapshot: Mapping[str, Any], settings: Sequence[str] = ()) -> LoadedPreset:
    """A preset from a `LoadedPreset.snapshot` with further settings, for a resumed run."""
    return restored(name, snapshot_layer(name, snapshot), settings)


def snapshot_layer(name: str, snapshot: Mapping[str, Any]) -> Layer:
    """The values of a snapshot, from which `restored` makes several presets. Raises UserError."""
    return layers.given(layers.from_mapping(snapshot, lambda _: f"snapshot of {name}", Path.cwd()))


def restored(name: str, layer: Layer, settings: Sequence[str]) -> LoadedPreset:
    """As `restore`, from a `snapshot_layer`."""
    return _load(name, None, "snapshot", [layer], settings)


def shipped() -> dict[str, Path]:
    """The presets that come with ppo-tui, by name."""
    return _presets(_SHIPPED)


def users() -> dict[str, Path]:
    """The user's own presets, by name."""
    return _presets(paths.presets_dir())


def available() -> dict[str, Path]:
    """Every preset that has a name; the user's shadow the shipped ones."""
    return {**shipped(), **users()}


def recipes() -> dict[str, Path]:
    """The recipes that a preset can take, by name; the user's shadow the shipped ones."""
    return {name: path for each in (_SHIPPED, paths.presets_dir()) for name, path in _presets(each / "recipes").items()}


def recipe_layer(name: Any, source: str) -> Layer:
    """The layer of a recipe; empty for None. Raises UserError for an unknown name, which was given at `source`."""
    return layers.stack(_recipe(name, source))


def extended_layer(path: Path, data: Mapping[Any, Any], place: Place) -> Layer:
    """The layer of the preset that `data` extends; empty if it extends none. Raises UserError."""
    return layers.stack(_extended(path, data, place, ()))


def changed_from_base(name_or_path: str) -> tuple[str, list[Edit]]:
    """The preset that a preset extends, and the values that it changes; empty if it extends none. Raises UserError."""
    path, _ = find(name_or_path)
    data, place = parse(path)
    base, own = extended_layer(path, data, place), load(name_or_path).layer
    edits = [
        Edit(
            ".".join(where[1:] if where[0] == "overrides" else where),
            base[where].value if where in base else None,
            entry.value,
        )
        for where, entry in own.items()
        if where not in _ABOUT and (where not in base or base[where].value != entry.value)
    ]
    return str(data.get("extends") or ""), edits if base else []


def recipe_about(name: str) -> str:
    """The description of a recipe; for an unreadable one, its error."""
    try:
        return str(parse(_own_or_shipped(recipes()[name]))[0].get("description") or "")
    except UserError as error:
        return str(error)


def summary(name_or_path: str) -> Summary:
    """What the list of presets shows. A preset that cannot be read is listed with its error."""
    path, origin = _find(name_or_path, Path.cwd())
    shadows = origin == "user" and path.stem in shipped()
    try:
        preset = load(name_or_path).preset
    except UserError as error:
        return Summary(path.stem, origin, path, error=str(error), shadows=shadows)
    return Summary(path.stem, origin, path, preset.description, preset.needs, shadows=shadows)


def _load(
    name: str, path: Path | None, origin: Origin, below: Iterable[Layer], settings: Sequence[str]
) -> LoadedPreset:
    """The preset that results from layers (the first on top) and from settings applied over them one by one."""
    stacked = list(below)
    for setting in settings:
        own = layers.from_setting(setting, Path.cwd())
        recipe = own.get(("recipe",))  # over what was set so far; what is set after it wins
        stacked = [own, *(_recipe(recipe.value, recipe.source) if recipe else ()), *stacked]
    layer = layers.stack(stacked)
    return LoadedPreset(name, path, origin, _validated(layer, stacked), layer)


def _chain(path: Path, text: str | None = None, below: tuple[Path, ...] = ()) -> Iterator[Layer]:
    """The layers of a file, its recipe and the presets it extends, top first; `below` are the files that led here."""
    real = path.resolve()
    if real in below:
        chain = " extends ".join(each.name for each in (*below[below.index(real) :], real))
        raise UserError(f"{path}: circular extends: {chain}")
    data, place = parse(path, text)
    layer = layers.from_mapping(data, place, path.parent)
    yield layers.given(layer) if path.is_relative_to(_SHIPPED) else layer
    yield from _recipe(data.get("recipe"), place(("recipe",)))
    yield from _extended(path, data, place, below)


def _recipe(name: Any, source: str) -> Iterator[Layer]:
    if name is None:
        return
    known = recipes()
    if not isinstance(name, str) or name not in known:
        hint = near_hint(str(name), known, f"use {', '.join(known)}")
        raise UserError(f"no recipe named {name!r}", hint, source)
    for layer in _chain(_own_or_shipped(known[name])):
        yield {where: entry for where, entry in layer.items() if where not in _ABOUT}


def _own_or_shipped(recipe: Path) -> Path:
    return recipe if recipe.is_relative_to(_SHIPPED) else obeyed(recipe)


def _extended(path: Path, data: Mapping[Any, Any], place: Place, below: tuple[Path, ...]) -> Iterator[Layer]:
    parent = data.get("extends")
    if parent is None:
        return
    source, real = place(("extends",)), path.resolve()
    if not isinstance(parent, str):
        raise UserError(f"extends is {parent!r}", "use the name of a preset, or a file", source)
    try:
        base, origin = _find(parent, path.parent, asking=real)
        base = obeyed(base) if origin == "user" else base
    except UserError as error:
        raise error.at(source) from None
    yield from _chain(base, below=(*below, real))


def _presets(folder: Path) -> dict[str, Path]:
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}


def _find(name: str, folder: Path, asking: Path | None = None) -> tuple[Path, Origin]:
    """The file of a preset. A preset that extends its own name (`asking`) means the one that it hides."""
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


def parse(path: Path, text: str | None = None) -> tuple[dict[Any, Any], Place]:
    """The file's mapping in Python's own types, and a function that names the place of a path in it.

    `text` is read instead of the file on the disk. Raises UserError.
    """
    try:
        document = _document(path, path.read_text(encoding="utf-8") if text is None else text)
    except ValueError:
        raise UserError("not UTF-8 text", "save the file as UTF-8", str(path)) from None
    except OSError as error:
        raise of_file(f"cannot read {path}", error) from None
    return _plain(document), functools.partial(_place, path, document)


@functools.lru_cache(maxsize=64)  # presets extend one another, and a list reads them all; nobody changes a document
def _document(path: Path, text: str) -> Mapping[Any, Any]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    if (why := refusal(text)) is not None:
        raise UserError(why, "a preset needs no more than a few hundred values", str(path))
    try:
        # Round trip: it alone knows the lines. A reader of its own each time, because they keep state.
        document = YAML(typ="rt").load(text)
    except MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        problem = _first_line(error.problem or error)
        raise UserError(f"{path}{line}: not valid YAML: {problem}", mending(text, error)) from None
    except (YAMLError, ValueError, RecursionError) as error:
        raise UserError(f"{path}: not valid YAML: {_first_line(error)}", "correct the file") from None
    if not isinstance(document, Mapping | None):
        raise UserError("a preset must be a mapping of names and values", "write NAME: VALUE lines", str(path))
    return document or {}


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
    """Converts ruamel's values to Python's own types, so that other code does not depend on ruamel."""
    if isinstance(value, Mapping):
        return {_name(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, bool):
        return value
    for kind in (int, float, str):
        if isinstance(value, kind):
            return kind(value)
    return str(value)  # a date is text to us


def _name(key: Any) -> Any:
    """A key that Python can use; YAML also allows lists and mappings as keys."""
    plain = _plain(key)
    return str(plain) if isinstance(plain, (dict, list)) else plain


def _first_line(problem: object) -> str:
    return clean(str(problem)).partition("\n")[0]


def _validated(layer: Layer, stacked: Sequence[Layer]) -> Preset:
    if wrong := [path for path, entry in layer.items() if not _allowed(path, entry.value)]:
        raise _refusal(layer, sorted(wrong, key=lambda path: _ORDER.get(".".join(path), _ORDER["env"])), stacked)
    return preset_of(layers.nest(layer))


def _allowed(path: tuple[str, ...], value: Any) -> bool:
    spec = FIELDS.get(".".join(path))
    return spec.allows(value) if spec else path[0] != "env" or isinstance(value, str)


def _refusal(layer: Layer, wrong: Sequence[tuple[str, ...]], stacked: Sequence[Layer]) -> WrongValue:
    """The first error in words: the place, the value, what is allowed."""
    entry, name = layer[wrong[0]], ".".join(wrong[0])
    spec = FIELDS.get(name)
    allowed = spec.allowed if spec else "text"  # of `env`
    near = nearest(entry.value, spec.choices) if spec and isinstance(entry.value, str) else None
    others = len(wrong) - 1
    more = f" (and {counted(others, 'more error')})" if others else ""
    shown = entry.typed or name
    what = f"{shown} is {entry.value!r}, which is not allowed{more}"
    place = "" if entry.source == layers.setting(shown) else entry.source  # the name is the place
    values = (each[wrong[0]].value for each in stacked if wrong[0] in each)
    below = next((value for value in values if _allowed(wrong[0], value)), None)
    return WrongValue(what, hint_of(near, f"use {allowed}"), place, name, entry.value, below, shown)
