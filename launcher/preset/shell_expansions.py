"""What `${NAME%/*}`, `${NAME,,}` and `$(dirname "$0")` come to, without running anything."""

import posixpath
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

OPERATION = re.compile(r"(\w+)(##?|%%?|//?|\^\^?|,,?)(.*)", re.DOTALL)
"""Name, operator and pattern of what stands between `${` and `}`."""

_REPLACEMENT = re.compile(r"(?<!\\)/")


def operands(pattern: str) -> tuple[str, str]:
    """Pattern and replacement of `${NAME/pattern/replacement}`."""
    first, *rest = _REPLACEMENT.split(pattern, maxsplit=1)
    return first, rest[0] if rest else ""


def changed(value: str, operator: str, pattern: str, replacement: str) -> str:
    """`value` after `#`, `%` (a beginning or an end cut off), `/` (replaced), `^`, `,` (upper or lower case).

    Doubled, an operator takes the longest match, or all of them.
    """
    if operator[0] in "^,":
        change = str.upper if operator[0] == "^" else str.lower
        return change(value) if len(operator) > 1 else change(value[:1]) + value[1:]
    lengths = range(len(value) + 1)
    if operator[0] in "#%":
        for size in reversed(lengths) if len(operator) > 1 else lengths:
            part, rest = (
                (value[:size], value[size:])
                if operator[0] == "#"
                else (value[len(value) - size :], value[: len(value) - size])
            )
            if fnmatchcase(part, pattern):
                return rest
        return value
    found, at = "", 0
    while at < len(value):
        end = next((end for end in range(len(value), at, -1) if fnmatchcase(value[at:end], pattern)), None)
        found, at = (found + value[at], at + 1) if end is None else (found + replacement, end)
        if end is not None and len(operator) == 1:
            break
    return found + value[at:]


def printed(commands: Iterable[list[str]], folder: str) -> str | None:
    """What commands about paths print when they are run in `folder`; None for all others."""
    output = None
    for name, *words in commands:
        paths = [word for word in words if not word.startswith("-")]
        if name == "pwd":
            output = folder
        elif name == "cd" and len(paths) == 1:
            folder = _from(folder, paths[0])
        elif name == "dirname" and paths:
            output = posixpath.dirname(paths[0]) or "."
        elif name == "basename" and paths:
            output = posixpath.basename(paths[0].rstrip("/")).removesuffix("".join(paths[1:2]))
        elif name in ("realpath", "readlink") and paths:
            output = _from(folder, paths[0])
        else:
            return None
    return output


def _from(folder: str, path: str) -> str:
    return path if path.startswith("~") else posixpath.normpath(posixpath.join(folder, path))
