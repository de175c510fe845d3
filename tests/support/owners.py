"""The screen classes that have keys, found by importing all modules, and their parts of the table."""

import functools
import importlib
import pkgutil
import sys

from textual.dom import DOMNode
from textual.screen import Screen

import tui
from tui.kit.keys import KEYS


@functools.cache
def owners() -> list[type[DOMNode]]:
    """The app, screens, dialogs and widgets that declare keys."""
    found: list[type[DOMNode]] = []
    for module in pkgutil.walk_packages(tui.__path__, "tui."):
        for each in vars(importlib.import_module(module.name)).values():
            ours = isinstance(each, type) and issubclass(each, DOMNode) and each.__module__ == module.name
            if ours and "BINDINGS" in vars(each):
                found.append(each)
    return found


def page_of(owner: type[DOMNode]) -> str:
    """The name of its part of the table."""
    (found,) = [page for page, keys in KEYS.items() if keys == vars(owner)["BINDINGS"]]
    return found


def pages_of(owner: type[DOMNode]) -> set[str]:
    """Its part of the table and inherited parts."""
    known = owners()
    bases = owner.__mro__ if owner._inherit_bindings else (owner,)
    return {page_of(each) for each in bases if each in known}


def pages_beside(screen: type[Screen[object]]) -> set[str]:
    """Further parts of the table that work on a screen: those of its bases, and of its widgets."""
    shared = screen.__module__ == "tui.kit.run_page"  # its lists are those of its other classes
    names = () if shared else vars(sys.modules[screen.__module__]).values()
    used = [each for each in names if each in owners() and not issubclass(each, Screen)]
    used = [each for each in used if not any(each in other.__mro__[1:] for other in used)]  # bases of the others
    return set().union(pages_of(screen), *map(pages_of, used)) - {page_of(screen)}
