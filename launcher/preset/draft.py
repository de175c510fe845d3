"""A preset during editing: its text, its fields, and undo.

The text is authoritative. Each change makes a new text (`launcher.preset.yaml_text`), so undo restores the previous
text, comments stay, and an unreadable part remains to be fixed.
"""

import functools
import itertools
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from launcher.core import paths
from launcher.core.errors import UserError, of_file, of_writing
from launcher.core.files import make_folder, write_atomic
from launcher.preset import layers, yaml_text
from launcher.preset.field_values import typed, where_of
from launcher.preset.files import LoadedPreset, load_text, of_data, read, recipe_layer, shipped, users
from launcher.preset.schema import FIELDS, ORDER
from launcher.preset.yaml_text import Where

NAMED = "use letters, digits, '-', '.' and '_', or a path that ends in .yaml"
_IMPORTED = re.compile(r"\A# Imported as .*\n")  # true of the first file alone


class ChangedOnDisk(UserError):
    """Another program changed or removed the file since it was read."""


class Draft:
    """The draft of one preset file. Values are named by their path: ("actor", "lr"), ("env", "NAME")."""

    def __init__(self, path: Path, text: str, *, on_disk: str | None, run: str | None = None) -> None:
        """`on_disk`: text of the file as last read, None without one. `run`: the run that the text came from."""
        self.path, self.run = path, run
        self.on_disk, self._first = on_disk, text
        self._texts, self._at = [text], 0

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def text(self) -> str:
        return self._texts[self._at]

    @property
    def reading(self) -> LoadedPreset:
        return _read(self.path, self.text)

    @property
    def _before(self) -> str:
        """The text of the file; without a file, the opened text."""
        return self._first if self.on_disk is None else self.on_disk

    @property
    def changed(self) -> bool:
        """Whether there are unsaved changes."""
        return self.text != self._before

    @property
    def is_new(self) -> bool:
        """Whether it has no file yet."""
        return self.on_disk is None

    def changed_fields(self) -> set[Where]:
        """Values that differ from the file or, without one, from the opened text; empty if the file is unreadable."""
        before = _read(self.path, self._before)
        if before.problem is not None:
            return set()
        now, then = self.reading.values, before.values
        return {where for where in now.keys() | then.keys() if now.get(where) != then.get(where)}

    def against(self) -> tuple[Mapping[Where, Any], str]:
        """Values to compare the draft with, and their name: its run's, the extended preset's, or its file's."""
        if self.run is not None:
            return _read(self.path, self._first).values, f"run {self.run}"
        if parent := self.reading.parent:
            return {where: entry.value for where, entry in parent.items()}, str(self.reading.raw.get("extends"))
        return _read(self.path, self._before).values, "the file"

    def value(self, where: Where) -> Any:
        """The effective value: the file's, the extended preset's, or the field's default."""
        found = self.reading
        if where in found.places:
            return at(found.raw, found.places[where][-1])
        if where in found.base:
            return found.base[where].value
        spec = FIELDS.get(".".join(where))
        return spec.default if spec else None

    def line(self, where: Where) -> int:
        """The line of the text, from 1, that sets a value; 1 without one."""
        found = self.reading
        place = found.line_of(found.places[where][-1]) if where in found.places else found.problem or ""
        number = re.search(r"line (\d+)", place)
        return int(number[1]) if number else 1

    def set(self, where: Where, value: Any) -> None:
        """Changes a value at its place, or adds it to its group. Raises UserError."""
        self._set(where, where, value)

    def add(self, name: str, value: Any) -> Where:
        """Sets a field, variable or veRL key by name, including `+`; returns its path. Raises UserError."""
        where = where_of(name)
        self._set(where, ("overrides", name.removeprefix("overrides.")) if where[0] == "overrides" else where, value)
        return where

    def _set(self, where: Where, spelled: Where, value: Any) -> None:
        """Changes a value at its place, or adds it as it is `spelled`."""
        if error := self.wrong(where, value):
            raise UserError(error)
        places, text = self.reading.places.get(where), self.text
        if where == ("recipe",):  # the file's own value would override the recipe's
            text = self._without(recipe_layer(value, "recipe"))
        self.replace(yaml_text.put(text, places[-1] if places else spelled, value, ORDER))

    def take(self, settings: Sequence[str]) -> None:
        """Applies `KEY=VALUE` settings; relative paths start in the working directory."""
        for setting in settings:
            for where, entry in layers.from_setting(setting, Path.cwd()).items():
                if where[0] == "overrides":
                    self.add(entry.spelling, entry.value)
                else:
                    self.set(where, entry.value)

    def set_text(self, where: Where, text: str) -> None:
        """Sets a typed value; an empty text removes the value. Raises UserError."""
        if text.strip():
            self.set(where, typed(where, text))
        else:
            self.unset(where)

    def check_text(self, where: Where, text: str) -> str | None:
        """Why a typed text is refused; None if it is allowed."""
        return self.wrong(where, typed(where, text)) if text.strip() else None

    def unset(self, where: Where) -> None:
        """Removes a value, so that the extended preset's value applies again."""
        self.replace(self._without([where]))

    def _without(self, unwanted: Iterable[Where]) -> str:
        """The text without some of its values."""
        text = self.text
        for where in unwanted:
            for place in self.reading.places.get(where, []):
                text = yaml_text.drop(text, place)
        return text

    def rename(self, old: str, new: str) -> None:
        """Gives the value of a misspelled field or veRL key its right name, in one change."""
        override = ("overrides", old)
        where = override if override in self.reading.places else tuple(old.split("."))
        self.replace(yaml_text.put(self._without([where]), where_of(new), self.value(where), ORDER))

    def replace(self, text: str) -> None:
        """Continues with another text, such as from the user's own editor."""
        if text != self.text:
            self._texts[self._at + 1 :] = [text]
            self._at += 1

    @property
    def undoable(self) -> bool:
        """Whether there is a change to undo."""
        return self._at > 0

    @property
    def redoable(self) -> bool:
        """Whether there is an undone change to redo."""
        return self._at + 1 < len(self._texts)

    def undo(self) -> bool:
        """Restores the previous text. Returns whether there was one."""
        self._at -= (possible := self.undoable)
        return possible

    def redo(self) -> bool:
        """Repeats an undone change. Returns whether there was one."""
        self._at += (possible := self.redoable)
        return possible

    def loaded(self) -> LoadedPreset:
        """The whole preset. Raises UserError with the first error."""
        loaded = load_text(self.path, self.text)
        if self.changed or self.is_new:
            return replace(loaded, path=None, origin="snapshot")
        return replace(loaded, origin="user" if self.path.parent == paths.presets_dir() else "file")

    def stale(self) -> str:
        """How another program changed the file since it was read: "changed", "removed", "" for nothing."""
        now = _content(self.path)
        return "" if now == self.on_disk else "removed" if now is None else "changed"

    def reload(self) -> None:
        """Rereads the file; undo restores the draft."""
        self.on_disk = _content(self.path)
        self.replace(self._before)

    @property
    def needs_name(self) -> bool:
        """Whether it must be saved under another name: a new preset from a run or a shipped one."""
        return self.is_new and (self.run is not None or _is_shipped(self.path))

    def save(self, *, over: bool = False) -> None:
        """Writes the file. Raises ChangedOnDisk if another program changed the file, unless `over`, and UserError for a
        new file with a shipped preset's name.
        """
        if self.is_new:
            _refuse_shipped(self.path)
        if not over and (what := self.stale()):
            raise ChangedOnDisk(f"{self.path} was {what} by another program after it was opened")
        try:
            make_folder(self.path.parent)
            write_atomic(self.path, self.text.encode())
        except OSError as error:
            raise of_writing(self.path, error, hint=paths.home_hint(error)) from None
        self.on_disk = self.text

    def save_as(self, name: str) -> None:
        """Writes another file and continues with it; relative paths are adapted. Raises UserError."""
        path = target(name)
        if path.exists():
            raise UserError(f"{path} already exists", "choose another name")
        text, found = self.text, self.reading
        if path.parent != self.path.parent:
            for where, entry in found.layers[0].items():
                place = found.places[where][-1]
                if (moved := _moved(where, at(found.raw, place), entry.value, self.path.parent)) is not None:
                    text = yaml_text.put(text, place, moved)
        self.path, self.on_disk = path, None
        self.replace(without_source(text))
        self.save(over=True)

    def wrong(self, where: Where, value: Any) -> str | None:
        """Why a value is refused, in one sentence; None if it is allowed."""
        nested: Any = value
        for name in reversed(where):
            nested = {name: nested}
        found = of_data(self.path, nested, lambda _: ".".join(where))
        return next(iter(found.errors.values()), None)


def without_source(text: str) -> str:
    """The text of a preset without the line about the script that it was imported from."""
    return _IMPORTED.sub("", text)


def target(name: str) -> Path:
    """The file of a new preset, from a name or a path. Raises UserError, also for a shipped name."""
    name = name.strip()
    if name.endswith((".yaml", ".yml")):
        path = layers.home(name, "preset").absolute()
        _refuse_shipped(path)
        return path
    if not name or name.startswith(".") or not name.replace("-", "").replace(".", "").replace("_", "").isalnum():
        raise UserError(f"{name!r} is not a valid preset name", NAMED)
    path = paths.presets_dir() / f"{name}.yaml"
    _refuse_shipped(path)
    return path


def free_name(name: str) -> str:
    """`name` if it is free for a new preset, otherwise a similar one: NAME-copy, NAME-copy-2."""
    taken = {*shipped(), *users()}
    later = (f"{name}-copy-{number}" for number in itertools.count(2))
    return next(each for each in itertools.chain((name, f"{name}-copy"), later) if each not in taken)


def _is_shipped(path: Path) -> bool:
    """Whether a user's file would hide a shipped preset."""
    return os.path.normpath(path.parent) == str(paths.presets_dir()) and path.stem in shipped()


def _refuse_shipped(path: Path) -> None:
    if _is_shipped(path):
        near = free_name(path.stem)
        raise UserError(f"'{path.stem}' is the name of a shipped preset", f"choose another name, such as {near}")


def at(raw: Any, place: Where) -> Any:
    """The value at a path of nested mappings; None without one."""
    for name in place:
        raw = raw.get(name) if isinstance(raw, Mapping) else None
    return raw


_read = functools.lru_cache(maxsize=8)(read)


def _moved(where: Where, raw: Any, located: Any, folder: Path) -> Any:
    """The absolute path for a relative one; None for other values."""
    if where == ("extends",):
        relative = isinstance(raw, str) and ("/" in raw or raw.endswith((".yaml", ".yml")))
        return str((folder / layers.home(raw, "extends")).absolute()) if relative else None
    spec = FIELDS.get(".".join(where))
    each = raw if isinstance(raw, list) else [raw]
    fixed = all(not isinstance(one, str) or one.startswith(("/", "~", "$")) for one in each)
    return None if spec is None or not spec.kind or fixed or raw == located else located


def _content(path: Path) -> str | None:
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise of_file(f"cannot read {path}", error) from None
