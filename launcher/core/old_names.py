"""Old names of commands, options and settings, by old_names.toml: what uses them is rewritten.

Each old name is printed with its new one on stderr, once in a process.
"""

import functools
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from launcher.core.tables import tables_of
from launcher.core.text import clean

_UNTIL = "0.4"


@functools.cache
def old_names() -> Mapping[str, Mapping[str, Any]]:
    """New names by old names, per kind: commands, options, settings, themes."""
    return tables_of(__file__)


def renamed(words: Sequence[str]) -> list[str]:
    """The words after `ppo-tui` with current names."""
    places = (
        place for place, word in enumerate(words) if not word.startswith("-") and words[:place][-1:] != ["--theme"]
    )
    first = next(places, len(words))
    before, typed = words[:first], list(words[first:])
    for length in (2, 1):
        old = " ".join(typed[:length])
        if new := old_names()["commands"].get(old):
            _note(f"ppo-tui {old}", f"ppo-tui {new}")
            typed[:length] = new.split()
            break
    known = old_names()["options"]
    options = known.get(" ".join(typed[:2])) or known.get(" ".join(typed[:1]), {})
    for place, word in enumerate(typed):
        option, equals, value = word.partition("=")
        if word == "--":
            break
        if new := options.get(option):
            _note(option, new)
            typed[place] = f"{new}{equals}{value}"
    return [*before, *typed]


def current_name(kind: str, name: str, place: str) -> str:
    """The current name of a setting or theme; `place` says where it is written."""
    new = old_names()[kind].get(name)
    if new is None:
        return name
    _note(name, new, f"{place}: ")
    return str(new)


@functools.cache
def _note(old: str, new: str, place: str = "") -> None:
    print(clean(f"note: {place}'{old}' is now '{new}'; the old name works until {_UNTIL}"), file=sys.stderr)
