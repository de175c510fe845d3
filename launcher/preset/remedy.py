"""What a sentence of advice changes in a preset: the veRL keys, fields and environment variables that it names."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from launcher.errors import UserError
from launcher.preset.effective import of_draft
from launcher.preset.field_values import where_of
from launcher.preset.files import restore
from launcher.preset.importer import OURS

# `KEY=VALUE`, `KEY= the right value`, `KEY ↓ (e.g. 8)`, `KEY`; `.optimizer_offload=True` stands behind another key.
_NAMED = re.compile(
    r"(?<![\w./`'\"-])(?P<key>\+{0,2}(?:[A-Za-z_]\w*)?(?:\.[A-Za-z_]\w*)+)(?:=(?P<value>\[[^\]]*\]|[^\s,:;()]*))?"
    r"(?: (?P<arrow>[↓↑])(?: \(e\.g\. (?P<example>[\d.e-]+\d|\d)\b)?)?"
)
_VARIABLE = re.compile(r"\benv: (?P<key>[A-Z_a-z]\w*)=(?P<value>\S*)")
_UNSAID = re.compile(r"\.\.\.|[<{]")  # stands for what only the user knows


@dataclass(frozen=True)
class Remedy:
    """Where in a preset the advice is followed, a field or veRL key, and the KEY=VALUE that it gives."""

    field: str
    settings: tuple[str, ...] = ()


def remedy(fix: str, preset: Mapping[str, Any]) -> Remedy | None:
    """How the advice is followed in a preset (as a run keeps it); None when it is about something else.

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
        value = match["value"] or _example(match["example"], match["arrow"], key, preset)
        if value and not _UNSAID.search(value):
            settings.setdefault(key, value)
    return Remedy(fields[0], tuple(f"{key}={value}" for key, value in settings.items())) if fields else None


def _settable(key: str) -> bool:
    """Whether a word is a key that a preset can hold."""
    try:
        return where_of(key)[1] not in OURS
    except UserError:
        return False


def _example(example: str | None, arrow: str, key: str, preset: Mapping[str, Any]) -> str | None:
    """The value of an example, unless the preset is there or further already."""
    if example is None:
        return None
    try:
        now = of_draft(restore("", preset).values()).number(key.lstrip("+"))
    except UserError:  # the preset of another ppo-tui
        return None
    beyond = now is not None and (now <= float(example) if arrow == "↓" else now >= float(example))
    return None if beyond else example
