"""The list of a run's flags: which one explains which others (causes.toml), their order, and the verdict."""

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from launcher.core.tables import read_tables, record
from launcher.record.check import Check
from launcher.record.levels import WARN, Level

_SOON = 3  # steps by which a cause may rise after what follows from it: rules differ in how long they wait
WARM_STEPS = 20  # before that a run without flags is still warming up
_BEFORE_OTHERS = ("NUM", "ERR", "LR", "KL", "ENT", "SIG", "REW", "LEN")  # root before symptom
_TELLING = ("KL-4", "KL-1", "ENT-1", "TRUNC-1", "REW-1")  # worth reading even when all is well


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


def sort(checks: Iterable[Check]) -> list[Check]:
    """Worst first; among equals the one that came on first, then likely roots before their symptoms.

    What follows from a flag is listed below it, and the worst of them decides its place.
    Where nothing is on, those come first that were on earlier, the latest ahead; then the most telling ones.
    """

    checks = list(checks)
    worst: dict[str, Level] = {}
    for check in checks:
        worst[check.cause] = max(worst.get(check.cause, check.level), check.level)

    def place(check: Check) -> tuple[bool, int, int, int, int]:
        family = check.rule.partition("-")[0]
        rank = _BEFORE_OTHERS.index(family) if family in _BEFORE_OTHERS else len(_BEFORE_OTHERS)
        if check.level > Level.OK:
            return check.muted, -max(check.level, worst.get(check.rule, check.level)), check.since or 0, 0, rank
        cleared = -check.cleared if check.cleared is not None else 1
        telling = _TELLING.index(check.rule) if check.rule in _TELLING else len(_TELLING)
        return check.muted, -check.level, cleared, telling, rank

    ordered = sorted(checks, key=place)
    return [each for root in ordered if not root.cause for each in (root, *_following(root, ordered))]


def _following(root: Check, checks: Iterable[Check]) -> Iterable[Check]:
    return (check for check in checks if check.cause == root.rule)


def verdict(checks: Sequence[Check], steps: int) -> Level:
    """The highest level that is on, muted rows aside; else WARM before the 20th step and OK from then on."""
    highest = max((check.level for check in checks if not check.muted), default=Level.OK)
    if highest > Level.OK:
        return highest
    return Level.WARM if steps < WARM_STEPS else Level.OK
