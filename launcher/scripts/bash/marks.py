"""Marks inside a value for unknown parts, and limits of reading.

A marked value goes through assignments, arrays and quotes like any other, so that derived values are also marked. An
unset variable is empty for the script, but requires a question if used in a setting.
"""

import re

from launcher.core.errors import UserError

_UNKNOWN, _UNSET, _END, _BLANK = "\x01", "\x02", "\x03", "\x04"
_MARK = re.compile(f"([{_UNKNOWN}{_UNSET}])([^{_END}]*){_END}")
_STRAY = re.compile(f"[\0{_UNKNOWN}{_UNSET}{_END}{_BLANK}]")

_STEPS = 50_000
_LETTERS = 4_000_000
_LONGEST = 1_000_000
_DEEPEST = 60
_REASON = 200


def unmarked(text: str) -> str:
    """A script's text without characters used as marks."""
    return _STRAY.sub("", text)


def unknown(reason: str) -> str:
    """A value known only at run time."""
    why = " ".join(_MARK.sub("", reason).split())[:_REASON]
    return f"{_UNKNOWN}{why.replace(' ', _BLANK)}{_END}"  # a mark is one word


def unset(name: str) -> str:
    """The value of an unset variable."""
    return f"{_UNSET}{name}{_END}"


def is_unknown(text: str) -> bool:
    """Whether a part of the value is unknown, such as an unset variable."""
    return _UNKNOWN in text


def is_marked(text: str) -> bool:
    """Whether the value has any mark."""
    return _UNKNOWN in text or _UNSET in text


def plain(text: str) -> str:
    """The value with all marks removed."""
    return _MARK.sub("", text) if _END in text else text


def without_unset(text: str) -> str:
    """The value with unset variables empty."""
    return _MARK.sub(lambda found: found[0] if found[1] == _UNKNOWN else "", text) if _UNSET in text else text


def as_script(text: str) -> str:
    """A value as script text: marks become expansions that yield the marks again."""

    def expansion(found: re.Match[str]) -> str:
        inside = found[2].replace(_BLANK, " ")
        return f"${{{inside}}}" if found[1] == _UNSET else inside if inside[:2] == "$(" else f"$({inside})"

    return _MARK.sub(expansion, text)


def reasons(text: str) -> list[str]:
    """Why parts of the value are unknown, such as `$(date)`."""
    return [found[2].replace(_BLANK, " ") for found in _MARK.finditer(text) if found[1] == _UNKNOWN]


def unset_names(text: str) -> list[str]:
    """The unset variables in the value."""
    return [found[2] for found in _MARK.finditer(text) if found[1] == _UNSET]


def derived(*sources: str) -> str:
    """A mark for an unknown value computed from marked values."""
    found = [why for text in sources for why in (*reasons(text), *(f"${name}" for name in unset_names(text)))]
    return unknown(", ".join(dict.fromkeys(found)) or "?")


def kept(*sources: str) -> str:
    """The unset-variable marks in values, for values computed from them."""
    return "".join(unset(name) for name in dict.fromkeys(name for text in sources for name in unset_names(text)))


class Budget:
    """Limits of work for one script. Every method raises UserError beyond them."""

    def __init__(self) -> None:
        self._steps, self._letters, self.depth = _STEPS, _LETTERS, 0

    def step(self, letters: int = 0) -> None:
        """Counts one command or expansion with `letters` characters."""
        self._steps -= 1
        self._letters -= letters
        if self._steps < 0 or self._letters < 0:
            raise UserError("reading the script takes too long; it has endless loops or expansions")

    def made(self, text: str) -> str:
        """Counts a new value, and returns it."""
        self._letters -= len(text)
        if len(text) > _LONGEST or self._letters < 0:
            raise UserError(f"the script builds a value of more than {_LONGEST:,} characters")
        return text

    def __enter__(self) -> None:
        self.depth += 1
        if self.depth > _DEEPEST:
            self.depth = 0
            raise UserError(f"the script nests commands or expansions more than {_DEEPEST} deep")

    def __exit__(self, *_: object) -> None:
        self.depth -= 1
