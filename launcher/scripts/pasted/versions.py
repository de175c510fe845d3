"""Versions of packages that a pasted text states: lines of pip, of veRL's issue form, or in a sentence."""

import re

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
    """Version by package, as `doctor` names it; the first one stated counts."""
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
