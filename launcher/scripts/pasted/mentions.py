"""Versions of packages and other frameworks mentioned in a pasted text.

A version can be in a line of pip, in veRL's issue form, or in a sentence. A framework other than veRL, or another
program of veRL, is recognized by its command.
"""

import functools
import re
from dataclasses import dataclass

from launcher.core.tables import record, tables_of
from launcher.verl.env import CUPY, PACKAGES

_NAMES = {re.sub(r"[-_.]+", "-", name).lower(): name for name in PACKAGES if name not in CUPY} | {"python": "Python"}
_ANY = "|".join(re.escape(name).replace(r"\-", "[-_.]?") for name in sorted(_NAMES, key=len, reverse=True))
_STATED = re.compile(
    rf"(?<![\w./@-])(?P<name>{_ANY})[`*\"']*\s*(?:version\b)?[`*\"']*\s*(?:==|[:=|@]|\bis\b)?\s*[`*\"']*"
    r"v?(?P<version>\d+\.\d[\w.+]*)",
    re.IGNORECASE,
)
_SECTION = re.compile(
    r"^-{2,}\s*(\w+) Info\s*-{2,}[ \t]*\n(?:[^\n-][^\n]*\n){0,3}?Version[ \t]*: *(\d[\w.+]*)", re.MULTILINE
)


def stated(text: str) -> dict[str, str]:
    """Version by package, named as in `doctor`; the first one stated counts."""
    found: dict[str, str] = {}
    pairs = [(match.start(), match[1], match[2]) for match in _SECTION.finditer(text)]
    pairs += [(match.start(), match["name"], match["version"]) for match in _STATED.finditer(text)]
    for _, name, version in sorted(pairs):
        known = _known(name)
        if known is not None:
            found.setdefault(known, version.rstrip("."))
    return found


def _known(name: str) -> str | None:
    flat = re.sub(r"[-_.]+", "", name).lower()
    return next((full for key, full in _NAMES.items() if key.replace("-", "") == flat), None)


@dataclass(frozen=True)
class Framework:
    """`sign` is searched in each line of a text; `about` ends the sentence "this is a command of NAME, ..."."""

    name: str
    sign: str
    about: str
    hint: str = "start from a preset ('ppo-tui preset list') and set its fields"


@functools.cache
def _frameworks() -> tuple[Framework, ...]:
    rows = tables_of(__file__, "frameworks.toml")["framework"]
    return tuple(record(Framework, row) for row in rows)


def recognized(text: str) -> Framework | None:
    """The framework of a text's command; None if unknown."""
    return next((each for each in _frameworks() if re.search(each.sign, text, re.MULTILINE)), None)
