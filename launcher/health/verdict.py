"""The list of a run's flags: which one explains which others (causes.toml), their order, and the verdict."""

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from launcher.core.tables import read_tables, record
from launcher.health.config import RunConfig
from launcher.record.check import Check
from launcher.record.levels import OK, WARN, Level

_SOON = 3  # steps by which a cause may rise after what follows from it: rules differ in how long they wait
Flags = Mapping[str, tuple[Level, int | None]]
"""Of the rules that flag a run, the level and the step at which it rose."""
WARM_STEPS = 20  # before that a run without flags is still warming up
_BEFORE_OTHERS = ("NUM", "ERR", "LR", "KL", "ENT", "SIG", "REW", "LEN")  # root before symptom
_TELLING = ("KL-4", "KL-1", "ENT-1", "TRUNC-1", "REW-1")  # worth reading even when all is well


@dataclass(frozen=True, slots=True)
class Cause:
    """A rule whose flag explains those of other rules; with `first` only those that did not rise clearly before it.

    With a `setting` only in runs whose configuration has it `above` a number.
    """

    rule: str
    explains: tuple[str, ...]
    first: bool = False
    setting: str = ""
    above: float = 0.0

    def of(self, rule: str, on: Flags) -> bool:
        """Whether it explains the flag of a rule, by the flags that are on."""
        level, since = on.get(self.rule, (OK, None))
        if level < WARN or rule not in self.explains:
            return False
        return not self.first or (since or 0) <= (on[rule][1] or 0) + _SOON


@functools.cache
def causes() -> tuple[Cause, ...]:
    """The rows of causes.toml, roots first."""
    rows = read_tables(Path(__file__).with_name("causes.toml"))["causes"]
    return tuple(record(Cause, row, explains=tuple(row["explains"])) for row in rows)


def causes_in(config: RunConfig) -> tuple[Cause, ...]:
    """The rows that can apply to a run."""
    return tuple(row for row in causes() if not row.setting or (config.number(row.setting) or 0.0) > row.above)


def roots(on: Flags, rows: Sequence[Cause]) -> dict[str, str]:
    """By rule the root of each flag that follows from another one."""
    causing: dict[str, str] = {}

    def root(rule: str) -> str:
        return root(causing[rule]) if rule in causing else rule

    for row in rows:
        for rule in on:
            if rule not in causing and root(row.rule) != rule and row.of(rule, on):
                causing[rule] = row.rule
    return {rule: root(rule) for rule in causing}


def explained(checks: Iterable[Check], rows: Sequence[Cause]) -> list[Check]:
    """The checks; a flag that follows from another one names the root of it and has its fixes."""
    found = {check.rule: check for check in checks}
    on = {rule: (check.level, check.since) for rule, check in found.items() if check.on and not check.muted}
    for rule, root in roots(on, rows).items():
        found[rule] = replace(found[rule], cause=root, fixes=found[root].fixes)
    return list(found.values())


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
