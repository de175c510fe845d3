"""Hydra's override grammar: values into text that means them, and text back into values."""

from __future__ import annotations

import math
import re
from typing import Any

from launcher.errors import UserError

_PLAIN = re.compile(r"[A-Za-z/_][A-Za-z0-9_/.@%\-]*")
_WORDS = {"true", "false", "null", "nan", "inf"}
_KEY = re.compile(r"(\+{0,2})([A-Za-z_][\w\-]*(?:[./@][\w\-]+)*)")
_BACKSLASHES = re.compile(r"(\\*)('|$)")


def quote(value: Any) -> str:
    """`value` as the right side of an override, without a shell: `quote("1e5") == "'1e5'"`.

    Strings that Hydra would read as something else (numbers, true, null, commas, brackets, a leading `~`) get
    quotes. Raises UserError for what the grammar cannot say: a type of its own, a mapping key with spaces.
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(quote(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{_name(key)}:{quote(item)}" for key, item in value.items()) + "}"
    raise UserError(f"{value!r} is not a value that a veRL override can carry")


def _text(value: str) -> str:
    if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    # Only backslashes before a quote or the end need doubling; others stand for themselves.
    return "'" + _BACKSLASHES.sub(lambda m: m[1] * 2 + ("\\'" if m[2] else ""), value) + "'"


def _name(key: Any) -> str:
    text = str(key)
    if isinstance(key, str) and _PLAIN.fullmatch(text) and text.lower() not in _WORDS and "@" not in text:
        return text
    raise UserError(
        f"{text!r} cannot be the name of an entry in a veRL override; use letters, digits, _ . and -"
    )


def split(text: str) -> tuple[str, str, str]:
    """`++a.b=1` as ("++", "a.b", "1"). Raises UserError for anything that is not KEY=VALUE."""
    key, equals, value = text.partition("=")
    if key.startswith("~"):
        raise UserError(f"'{text}': a veRL key cannot be deleted with '~'; set it to another value")
    if not equals:
        raise UserError(f"'{text}' is not a setting; write KEY=VALUE, such as actor.lr=1e-6")
    prefix, name = split_key(key.strip())
    return prefix, name, value.strip()


def split_key(key: str) -> tuple[str, str]:
    """`+a.b` as ("+", "a.b")."""
    match = _KEY.fullmatch(key)
    if match is None:
        raise UserError(f"'{key}' is not a key; keys are names joined by dots, such as actor.lr")
    return match[1], match[2]


def parse(text: str) -> Any:
    """The value that Hydra reads from the right side of an override.

    What its grammar refuses, such as `~/data` or `it's`, is taken as plain text: `quote` will protect it.
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.core.override_parser.types import QuotedString
    from hydra.errors import HydraException

    def plain(value: Any) -> Any:
        if isinstance(value, QuotedString):
            return value.text
        if isinstance(value, list):
            return [plain(item) for item in value]
        if isinstance(value, dict):
            return {plain(key): plain(item) for key, item in value.items()}
        return value

    try:
        override = OverridesParser.create().parse_override(f"key={text}")
    except HydraException:
        return text
    if override.is_sweep_override():
        return text
    return plain(override.value())
