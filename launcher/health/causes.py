"""Which flag explains which others, by causes.toml: the one place for lists, alerts and reports."""

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from launcher.core.tables import read_tables, record
from launcher.record.check import Check
from launcher.record.levels import WARN

_SOON = 3  # steps by which a cause may rise after what follows from it: rules differ in how long they wait


@dataclass(frozen=True, slots=True)
class Cause:
    """A rule whose flag explains those of other rules; with `first` only those that did not rise clearly before it."""

    rule: str
    explains: tuple[str, ...]
    first: bool = False

    def of(self, check: Check, on: Mapping[str, Check]) -> bool:
        """Whether it explains a flag, by the flags that are on."""
        cause = on.get(self.rule)
        if cause is None or cause.level < WARN or check.rule not in self.explains:
            return False
        return not self.first or (cause.since or 0) <= (check.since or 0) + _SOON


@functools.cache
def causes() -> tuple[Cause, ...]:
    """The rows of causes.toml, roots first."""
    rows = read_tables(Path(__file__).with_name("causes.toml"))["causes"]
    return tuple(record(Cause, row, explains=tuple(row["explains"])) for row in rows)


def explained(checks: Iterable[Check]) -> list[Check]:
    """The checks; a flag that follows from another one names the root of it and has its fixes."""
    checks = list(checks)
    on = {check.rule: check for check in checks if check.on and not check.muted}
    causing: dict[str, str] = {}

    def root(rule: str) -> str:
        return root(causing[rule]) if rule in causing else rule

    for row in causes():
        for rule, check in on.items():
            if rule not in causing and root(row.rule) != rule and row.of(check, on):
                causing[rule] = row.rule
    return [
        replace(check, cause=root(check.rule), fixes=on[root(check.rule)].fixes) if check.rule in causing else check
        for check in checks
    ]
