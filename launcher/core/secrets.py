"""Passwords, keys and tokens: refused in settings, hidden by `redact` in all output."""

import re
from collections.abc import Iterable
from typing import Any, TextIO

from launcher.core.secret_forms import HIDDEN, hide, looks_secret, names_secret
from launcher.core.secret_values import mask
from launcher.core.text import inert

_NUMBERS = frozenset((float, int))
_ELSEWHERE = re.compile(r"\$\{oc\.(?:env|decode):")  # read from the environment when the run starts

_KEY = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----(?:.*?-----END[A-Z ]*(?:-----)?|(?P<open>[\s\\\"',]*$)|[^\"']*)"
)
_KEY_END = re.compile(r".*-----END [A-Z ]*-----")
_KEY_BODY = re.compile(r"(?:(?:(?<=\s)|^)[A-Za-z0-9+/]{12,}={0,2}|^[A-Za-z0-9+/]{4,}={0,2})(?=(?:\\n|[\s\"',])*$)")
_KEY_LINES = 400  # lines of the longest private key, with other lines in between


class Redactor:
    """Redacts a stream of whole lines, including private keys across parts."""

    def __init__(self, *, in_key: bool = False) -> None:
        """`in_key`: the text begins inside a private key."""
        self._left = _KEY_LINES if in_key else 0  # lines that the key may still have

    def __call__(self, text: str) -> str:
        """The text without control characters and with `***` for its secrets. JSON stays JSON."""
        return hide(self.without_keys(mask(inert(text))))

    def without_keys(self, text: str) -> str:
        """The text with `***` for private keys only, which is fast."""
        if self._left or "PRIVATE KEY" in text:
            text = "\n".join(map(self._without_key, inert(text).split("\n")))
        return text

    def _without_key(self, line: str) -> str:
        if begun := _KEY.search(line):
            self._left = _KEY_LINES if begun["open"] is not None else 0
            return line[: begun.start()] + HIDDEN + line[begun.end() :]
        if self._left and (end := _KEY_END.match(line)):
            self._left = 0
            return HIDDEN + line[end.end() :]
        self._left -= self._left > 0
        return _KEY_BODY.sub(HIDDEN, line) if self._left else line


def redact(text: str) -> str:
    """A whole text without control characters and with `***` for its secrets."""
    return Redactor()(text)


class Redacted:
    """A text stream for all output of commands, which passes on inert text without secrets."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self._redact = Redactor()

    def write(self, text: str) -> int:
        self.stream.write(text if text == "\n" else self._redact(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def in_setting(key: str, value: Any) -> bool:
    """Whether the value of a veRL key or field is a secret, by the key's name or the value's form."""
    if isinstance(value, dict):
        return any(in_setting(str(name), item) for name, item in value.items())
    if isinstance(value, (list, tuple)):
        return any(in_setting(key, item) for item in value)
    if not isinstance(value, str) or not value or _ELSEWHERE.search(value):
        return False
    return names_secret(key) or looks_secret(value)


def redacted(key: str, value: Any) -> Any:
    """The value of a key, or `***` if it is a secret."""
    return HIDDEN if in_setting(key, value) else value


def redact_tree(value: Any) -> Any:
    """A JSON value without secrets in strings and under secret keys; other strings keep control characters."""
    return _redact_tree(value, Redactor())


def _redact_tree(value: Any, redactor: Redactor) -> Any:
    if isinstance(value, dict):
        if _NUMBERS.issuperset(map(type, value.values())):  # the metrics of a step
            return value
        return {name: _redact_tree(_named(str(name), item), redactor) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_redact_tree(item, redactor) for item in value]
    if not isinstance(value, str):
        return value
    found = redactor(value)
    return value if found == inert(value) else found


def _named(key: str, value: Any) -> Any:
    named = isinstance(value, str) and value and names_secret(key) and not _ELSEWHERE.search(value)
    return HIDDEN if named else value
