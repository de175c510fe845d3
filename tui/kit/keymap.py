"""The keys of the screen by id, with the user's own keys."""

import string
from collections.abc import Container, Mapping
from dataclasses import dataclass, replace

from textual.binding import Binding, BindingsMap
from textual.keys import Keys

from launcher.core.text import clean, did_you_mean
from launcher.settings import Key
from tui.kit.keys import KEYS, LETTERS, NAMES, TOGETHER

_MODIFIERS = ("ctrl", "shift", "alt", "super", "hyper", "meta")


@dataclass(frozen=True)
class Command:
    """A key's action: an id, its keys with Textual's names (`slash`, `ctrl+z`), and its words."""

    id: str
    keys: tuple[str, ...]
    what: str
    default: tuple[str, ...]

    def as_json(self) -> dict[str, object]:
        """A line of `ppo-tui config keys --json`."""
        return {"id": self.id, "keys": list(self.keys), "default": list(self.default), "what": self.what}


def bindings(*pages: str) -> list[Binding]:
    """The bindings of some pages in the table, one per key."""
    return [binding for page in pages for _, binding in BindingsMap(KEYS[page])]


def commands(keymap: Mapping[str, str] | None = None) -> dict[str, Command]:
    """All commands by id, with a keymap's keys."""
    found: dict[str, Command] = {}
    for binding in bindings(*KEYS):
        name = str(binding.id)
        command = found.setdefault(name, Command(name, (), binding.tooltip or binding.description, ()))
        if binding.key not in command.default:
            keys = (*command.default, binding.key)
            found[name] = replace(command, keys=keys, default=keys)
    for name, asked in (keymap or {}).items():
        found[name] = replace(found[name], keys=tuple(asked.split(",")))
    return found


def checked(asked: Mapping[str, Key]) -> tuple[dict[str, str], list[str]]:
    """The keymap to set, and a sentence per refused entry: unknown ids, keys that no terminal sends, and keys of
    another action on the same screen.
    """
    if not asked:
        return {}, []
    known, wrong = commands(), []
    good: dict[str, str] = {}
    for name, key in asked.items():
        keys = [_name(each) for each in key.keys.replace(" ", "").split(",") if each] or [key.keys]
        bad = next((each for each in keys if not _exists(each)), None)
        if name not in known:
            wrong.append(
                f"{key.place}: unknown key id{did_you_mean(name, known)}; list the ids with `ppo-tui config keys`"
            )
        elif bad is not None:
            near = did_you_mean(bad, _NAMED)
            wrong.append(f"{key.place}: {clean(bad)!r} is not a key{near}; use a name such as a, f5, ctrl+f or slash")
        else:
            good[name] = ",".join(keys)
    while clash := _clash(good):
        name, key_name, other = clash
        del good[name]
        place = asked[name].place
        wrong.append(f"{place}: {key_name} is already used by {other}; use another key or move {other}")
    return good, wrong


def _clash(keymap: Mapping[str, str]) -> tuple[str, str, str] | None:
    """A keymap's id, its key, and another id with that key on the same screen."""
    for page in KEYS:
        holders: dict[str, set[str]] = {}
        for binding in bindings("app", page, *TOGETHER.get(page, ())):
            for key in keymap.get(str(binding.id), binding.key).split(","):
                holders.setdefault(key, set()).add(str(binding.id))
        for key, names in holders.items():
            moved = sorted(name for name in names if key in keymap.get(name, "").split(","))
            if moved and len(names) > 1:
                return moved[-1], key, min(names - {moved[-1]})
    return None


def _name(key: str) -> str:
    """Textual's name of a key: `/` is `slash`."""
    return next(iter(Binding.make_bindings([Binding(key, "")]))).key


_NAMED = {str(key.value) for key in Keys} | {_name(sign) for sign in string.punctuation if sign != ","}


def _exists(key: str) -> bool:
    *modifiers, name = key.split("+")
    plain = name in _NAMED or (len(name) == 1 and name.isalnum())
    return key in _NAMED or (plain and all(modifier in _MODIFIERS for modifier in modifiers))


_OTHERS = {"confirm.yes", "confirm.no"}  # letters with a meaning of their own
_MEANINGS = {letter: meaning for meaning, letter in LETTERS.items()}


def no_use(key: str, moved: Container[str] = ()) -> str:
    """The pages with a key that this page lacks, as words, or "". `moved`: bindings that the user moved."""
    having = pages(key, moved) if key in _MEANINGS else []
    return f"{key} ({_MEANINGS[key]}) does nothing here; it works in: {', '.join(having)}" if having else ""


def page_name(page: str) -> str:
    """The screen's page for a part of the table of keys."""
    return NAMES.get(page, page)


def pages(letter: str, moved: Container[str] = ()) -> list[str]:
    """The distinct pages with a letter, without the page opened by the letter itself."""
    found = [
        page_name(page)
        for page in KEYS
        for binding in bindings(page)
        if letter in binding.key.split(",")
        and binding.description != "back"
        and binding.id not in _OTHERS
        and str(binding.id) not in moved
    ]
    return list(dict.fromkeys(found))
