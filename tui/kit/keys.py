"""The keys of the screen by page or widget, from keys.toml.

A letter has one meaning on all pages, listed in `LETTERS`; in dialogs letters are answers. Rare actions are in the menu
of their page: their key is the menu's and their letter in it, "a e". Classes bind their part of `KEYS`, `config.yaml`
changes keys by id, and `ppo-tui config keys` lists them without importing a screen. The footer shows some of them; help
and palette show all.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from textual.binding import Binding, BindingType

from launcher.core.tables import tables_of

_TABLES = tables_of(__file__, "keys.toml")
LETTERS: dict[str, str] = _TABLES["letters"]  # meaning -> key, wherever a page has it
TOGETHER: dict[str, Sequence[str]] = _TABLES["together"]  # a page -> others whose keys work on the same screen
NAMES: dict[str, str] = _TABLES["names"]  # a part of the table -> the page that a user sees, if it has another name


def _bindings(rows: Iterable[Mapping[str, Any]]) -> list[Binding]:
    found: list[Binding] = []
    for row in rows:
        if "take" in row:
            footer, without = row.get("footer", ()), row.get("without", ())
            taken = (key for key in _bindings(_TABLES["shared"][row["take"]]) if key.id not in without)
            found += [replace(key, show=True) if key.id in footer else key for key in taken]
        elif "moves" in row:
            found += [_move(name, action, row.get("letters", True)) for name, action in row["moves"].items()]
        else:
            found.append(_binding(**row))
    return found


def _binding(
    id: str,
    do: str,
    tip: str,
    keys: str = "",
    menu: str = "",
    label: str = "",
    sign: str = "",
    footer: bool = False,
    priority: bool = False,
) -> Binding:
    named = f"{LETTERS['actions']} {menu}" if menu else ",".join(LETTERS.get(key, key) for key in keys.split(","))
    return Binding(named, do, label, footer, sign or None, priority, tip, id)


def _move(name: str, action: str, letters: bool) -> Binding:
    """Keys that move a cursor; `letters`: k, j, g and G, for a list without a text field."""
    move = _TABLES["moves"][name]
    keys = move["keys"] if letters else move["keys"].partition(",")[0]
    return _binding(f"move.{name.replace('_', '-')}", action, move["tip"], keys, sign=move["sign"])


_PAGES = {page: _bindings(rows) for page, rows in _TABLES["pages"].items()}
KEYS: dict[str, list[BindingType]] = {page: [*found] for page, found in _PAGES.items()}
MENU = {str(each.id): each.key[-1] for found in _PAGES.values() for each in found if " " in each.key}
"""Ids of menu actions, each with its letter in the menu."""
