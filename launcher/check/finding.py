"""The findings of checks."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

Group = Literal["config", "data", "model", "hardware", "software"]
Level = Literal["error", "warning", "info"]

Change = Mapping[str, Any]
"""Preset field -> value."""

GROUPS: tuple[Group, ...] = ("config", "data", "model", "hardware", "software")
LEVELS: tuple[Level, ...] = ("error", "warning", "info")
REHEARSAL = "REHEARSAL"
"""The id of a rehearsal's finding, which belongs to no rule."""


@dataclass(frozen=True)
class Finding:
    """One thing that stops a run (error), harms it (warning) or should be known (info).

    `id` names the rule (V3, P12 and DATA-2 of docs/reference/findings.md), `keys` the veRL keys it is about.
    `fix` is a sentence with a value that works. `change` is the one safe change, if there is one: preset
    field -> value. `rename` is a misspelled key or field of the preset and the right one.
    """

    id: str
    group: Group
    level: Level
    keys: tuple[str, ...]
    message: str
    fix: str
    change: Change | None = None
    rename: tuple[str, str] | None = None

    def as_json(self) -> dict[str, Any]:
        """One object of `check --json`; `change` and `rename` only if there is one."""
        found = {each.name: getattr(self, each.name) for each in fields(Finding)} | {"keys": list(self.keys)}
        for name in ("change", "rename"):
            if not found[name]:
                del found[name]
        return found


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """The findings as people read them: errors first, then by group."""
    return sorted(findings, key=lambda each: (LEVELS.index(each.level), GROUPS.index(each.group)))


@dataclass(frozen=True)
class Findings:
    """Makes the findings of one group."""

    group: Group

    def error(self, id: str, message: str, fix: str, keys: Sequence[str] = (), change: Change | None = None) -> Finding:
        """Makes an error: it stops the run."""
        return Finding(id, self.group, "error", tuple(keys), message, fix, change)

    def warning(
        self, id: str, message: str, fix: str, keys: Sequence[str] = (), change: Change | None = None
    ) -> Finding:
        """Makes a warning: it may harm the run."""
        return Finding(id, self.group, "warning", tuple(keys), message, fix, change)

    def info(self, id: str, message: str, fix: str, keys: Sequence[str] = (), change: Change | None = None) -> Finding:
        """Makes a note."""
        return Finding(id, self.group, "info", tuple(keys), message, fix, change)


of_config, of_data, of_model, of_hardware, of_software = map(Findings, GROUPS)
