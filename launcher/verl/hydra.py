"""Hydra's override grammar: formats values as text and parses text into values."""

import math
import re
from typing import Any

from launcher.core.errors import UserError

_PLAIN = re.compile(r"[A-Za-z/_][A-Za-z0-9_/.@%\-]*")
_WORDS = {"true", "false", "null", "nan", "inf"}
_KEY = re.compile(r"(\+{0,2}|~)([A-Za-z_][\w\-]*(?:[./@][\w\-]+)*)", re.ASCII)
_NO_NAME = re.compile(r"\A[\d.+-]|['\"]")
_ESCAPED = re.compile(r"[\\()\[\]{}:=, \t]")
_BACKSLASHES = re.compile(r"(\\*)('|$)")


def quote(value: Any) -> str:
    """`value` as the right side of an override, without a shell: `quote("1e5") == "'1e5'"`.

    Quotes text that Hydra would read as another type (numbers, true, null, commas, brackets, a leading `~`). Raises
    UserError for values that the grammar lacks: objects, entry names with spaces.
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value) if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(quote(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{_name(key)}:{quote(item)}" for key, item in value.items()) + "}"
    raise UserError(f"{value!r} cannot be used in a veRL override")


def is_group(key: str) -> bool:
    """Whether a key selects a file of veRL's configuration: `model_engine`, `actor@actor_rollout_ref.actor`."""
    return key == "model_engine" or "@" in key or "/" in key


def refers(value: str) -> bool:
    """Whether a text has an OmegaConf interpolation: `${data.train_batch_size}`."""
    return "${" in value


def split(text: str) -> tuple[str, str, str]:
    """`++a.b=1` as ("++", "a.b", "1"). Raises UserError for text other than KEY=VALUE."""
    key, equals, value = text.partition("=")
    if key.startswith("~"):
        raise UserError(f"{text!r}: removing a veRL key with '~' is not supported", "set another value")
    if not equals:
        raise UserError(f"{text!r} is not a setting", "use KEY=VALUE, such as actor.lr=1e-6")
    return *split_key(key.strip(), f"setting {key!r}"), value.strip()


def split_key(key: str, source: str) -> tuple[str, str]:
    """`+a.b` as ("+", "a.b"). Raises UserError, which starts with `source`."""
    match = _KEY.fullmatch(key)
    if match is None:
        raise UserError(f"{key!r} is not a valid key", "use names joined by dots, such as actor.lr", source)
    return match[1], match[2]


def parse(text: str) -> Any:
    """Hydra's value for the right side of an override.

    Text that its grammar refuses or reads as a sweep (`~/data`, `it's`, `a,b`) stays unchanged.
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    try:
        override = OverridesParser.create().parse_override(f"key={text}")
    except (HydraException, RecursionError):
        return text
    if override.is_sweep_override():
        return text
    try:
        return _plain(override.value())
    except TypeError:
        return text


def _plain(value: Any) -> Any:
    """Python types for the results of Hydra's parser. Raises TypeError for its functions."""
    from hydra.core.override_parser.types import QuotedString

    if isinstance(value, QuotedString):
        return value.text
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {_plain(key): _plain(item) for key, item in value.items()}
    if value is None or isinstance(value, (str, int, float)):
        return value
    raise TypeError(value)


def _text(value: str) -> str:
    if "\0" in value:
        raise UserError(f"{value!r} contains a NUL character, which a command line cannot pass")
    if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    # Only backslashes before a quote or the end need doubling; others stand for themselves.
    return "'" + _BACKSLASHES.sub(lambda match: match[1] * 2 + ("\\'" if match[2] else ""), value) + "'"


def _name(key: Any) -> str:
    if isinstance(key, str) and key and key.strip() == key and key.lower() not in _WORDS and not _NO_NAME.search(key):
        return _ESCAPED.sub(lambda match: f"\\{match[0]}", key)
    raise UserError(f"{key!r} is not a valid name in a veRL override")
