"""What a sentence of advice changes in a preset: the veRL keys, fields and environment variables that it names."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from launcher.errors import UserError
from launcher.preset.effective import EffectiveConfig, of_draft
from launcher.preset.field_values import where_of
from launcher.preset.files import restore
from launcher.preset.importer import OURS
from launcher.preset.schema import FIELDS
from launcher.preset.yaml_text import value_of

# `KEY=VALUE`, `KEY= the right value`, `KEY ↓ (e.g. 8)`, `KEY`; `.optimizer_offload=True` stands behind another key.
_NAMED = re.compile(
    r"(?<![\w./`'\"-])(?P<key>\+{0,2}(?:[A-Za-z_]\w*)?(?:\.[A-Za-z_]\w*)+)(?:=(?P<value>\[[^\]]*\]|[^\s,:;()]*))?"
    r"(?: (?P<arrow>[↓↑])(?: \(e\.g\. (?P<example>[\d.e-]+\d|\d)\b)?)?"
)
_VARIABLE = re.compile(r"\benv: (?P<key>[A-Z_a-z]\w*)=(?P<value>\S*)")
_UNSAID = re.compile(r"\.\.\.|[<{]")  # stands for what only the user knows


@dataclass(frozen=True)
class Remedy:
    """Where in a preset the advice is followed, a field or veRL key, and the KEY=VALUE that it gives.

    `done`: the preset has these values already.
    """

    field: str
    settings: tuple[str, ...] = ()
    done: bool = False


def configuration(preset: Mapping[str, Any]) -> EffectiveConfig:
    """The configuration that a preset (as a run keeps it) comes to; veRL's own where it cannot be read any more."""
    try:
        return of_draft(restore("", preset).values())
    except UserError:
        return EffectiveConfig()


def remedy(fix: str, config: EffectiveConfig) -> Remedy | None:
    """How the advice is followed in the preset that comes to `config`; None when it is about something else.

    A value that only shows the direction counts where it leads there: ↓ (e.g. 8) not when the value is 4.
    """
    if fix.startswith("not "):
        return None
    if variable := _VARIABLE.search(fix):
        name = f"env.{variable['key']}"
        return Remedy(name, (f"{name}={variable['value']}",) if variable["value"] else ())
    fields: list[str] = []
    settings: dict[str, str] = {}
    last = ""
    for match in _NAMED.finditer(fix):
        key = match["key"] if not match["key"].startswith(".") else last.rpartition(".")[0] + match["key"]
        if not _settable(key):
            continue
        last = key
        fields.append(key)
        value = match["value"] or _example(match["example"], match["arrow"], key, config)
        if value and not _UNSAID.search(value):
            settings.setdefault(key, value)
    if not fields:
        return None
    done = bool(settings) and all(_now(key, config) == value_of(value) for key, value in settings.items())
    return Remedy(fields[0], tuple(f"{key}={value}" for key, value in settings.items()), done)


def _settable(key: str) -> bool:
    """Whether a word is a key that a preset can hold."""
    try:
        return where_of(key)[-1] not in OURS
    except UserError:
        return False


def _now(key: str, config: EffectiveConfig) -> Any:
    """What a key, or a field by its name, is at present."""
    where = where_of(key)
    spec = FIELDS.get(".".join(where))
    return config.get(spec.key if spec else where[1])


def _example(example: str | None, arrow: str, key: str, config: EffectiveConfig) -> str | None:
    """The value of an example, unless the preset is there or further already."""
    now = _now(key, config)
    if example is None or not isinstance(now, int | float):
        return example
    beyond = now <= float(example) if arrow == "↓" else now >= float(example)
    return None if beyond else example
