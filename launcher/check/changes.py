"""Tests offered changes: each is applied and checked first, and extended until it causes no new error."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from launcher.check.finding import Finding, Settings, setting
from launcher.check.subject import Subject
from launcher.record.fix import Fix

REACH = 32  # how far from a number another one is looked for
ROUNDS = 5  # changes that one change may bring along


def tested(
    subject: Subject, findings: Sequence[Finding], check: Callable[[Subject], Iterable[Finding]]
) -> list[Finding]:
    """The findings, with changes after which `check` finds none of them again and no other error.

    A number that would cause another error is replaced by the nearest one that does not. If there is none, or another
    finding would change it again, the change is extended by its consequences. If neither helps, no change is offered.
    """
    known = {_name(finding) for finding in findings if finding.level == "error"}
    before = {_name(finding) for finding in findings}

    def wrong(finding: Finding, change: Settings) -> list[Finding]:
        """The remaining and new errors after a change."""
        after = check(subject.with_fields(change))
        return [
            each
            for each in after
            if _name(each) == _name(finding) or (each.level == "error" and _name(each) not in known)
        ]

    def settled(change: Settings) -> bool:
        """Whether no new finding would change the same fields again."""
        new = (each for each in check(subject.with_fields(change)) if _name(each) not in before)
        return all(change.keys().isdisjoint(each.change or {}) for each in new)

    def better(finding: Finding) -> Finding:
        change = finding.change
        if not change or not (left := wrong(finding, change)):
            return finding
        instead = next((other for other in _numbers(change) if not wrong(finding, other)), None)
        if instead and settled(instead):
            return replace(finding, fixes=(setting(instead),))
        for _ in range(ROUNDS):
            more = next((each.change for each in left if each.change), None)
            if more is None:
                break
            change = {**change, **{name: value for name, value in more.items() if name not in change}}
            left = wrong(finding, change)
        if instead and (left or not settled(change)):
            return replace(finding, fixes=(setting(instead),))
        return replace(finding, fixes=(Fix(finding.fix) if left else setting(change),))

    return [better(finding) for finding in findings]


def _numbers(change: Settings) -> Iterator[Settings]:
    """Other numbers for a change of a single one, the nearest first."""
    (field, value), *others = change.items()
    if not others and type(value) is int:
        near = (number for distance in range(1, REACH + 1) for number in (value - distance, value + distance))
        yield from ({field: number} for number in near if number > 0)


def _name(finding: Finding) -> tuple[str, tuple[str, ...]]:
    return finding.id, finding.keys
