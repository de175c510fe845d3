"""Tests offered changes: each is applied and checked first, and extended until it causes no new error."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence

from launcher.check.finding import Change, Finding
from launcher.check.subject import Subject

REACH = 32  # how far from a number another one is looked for
ROUNDS = 5  # changes that one change may bring along


def setting(change: Change) -> str:
    """A change in words: `actor.param_offload=true and critic.param_offload=true`."""
    words = {True: "true", False: "false"}
    return " and ".join(
        f"{field}={words[value] if isinstance(value, bool) else value}" for field, value in change.items()
    )


def tested(
    subject: Subject, findings: Sequence[Finding], check: Callable[[Subject], Iterable[Finding]]
) -> list[Finding]:
    """The findings, with changes after which `check` finds none of them again and no other error.

    A number that would cause another error is replaced by the nearest one that does not. If there is none, or another
    finding would change it again, the change is extended by its consequences. If neither helps, no change is offered.
    """
    known = {_name(finding) for finding in findings if finding.level == "error"}
    before = {_name(finding) for finding in findings}

    def wrong(finding: Finding, change: Change) -> Iterator[Finding]:
        """The remaining and new errors after a change."""
        for each in check(subject.with_fields(change)):
            if _name(each) == _name(finding) or (each.level == "error" and _name(each) not in known):
                yield each

    def settled(change: Change) -> bool:
        """Whether no new finding would change the same fields again."""
        new = (each for each in check(subject.with_fields(change)) if _name(each) not in before)
        return all(change.keys().isdisjoint(each.change or {}) for each in new)

    def better(finding: Finding) -> Finding:
        change: Change = finding.change or {}
        left = list(wrong(finding, change)) if change else []
        if not left:
            return finding
        instead = next((other for other in _numbers(change) if not any(wrong(finding, other))), None)
        if instead and settled(instead):
            return _with(finding, instead)
        first = change
        for _ in range(ROUNDS):
            more = [each.change for each in left if each.change]
            if not left or not more:
                break
            change = {**more[0], **change}
            left = list(wrong(finding, change))
        if instead and (left or not settled(change)):
            return _with(finding, instead)
        if left:
            return dataclasses.replace(finding, change=None)
        along = setting({name: value for name, value in change.items() if name not in first})
        fix = f"{finding.fix}; {setting(first)} also requires {along}"
        return dataclasses.replace(finding, fix=fix, change=change)

    return [better(finding) for finding in findings]


def _with(finding: Finding, change: Change) -> Finding:
    """The finding with a single number as its change."""
    (field, number), *_ = change.items()
    return dataclasses.replace(finding, fix=f"set {field} to {number}", change=change)


def _numbers(change: Change) -> Iterator[Change]:
    """Other numbers for a change of a single one, the nearest first."""
    (field, value), *others = change.items()
    if others or type(value) is not int:
        return
    for distance in range(1, REACH + 1):
        for number in (value - distance, value + distance):
            if number > 0:
                yield {field: number}


def _name(finding: Finding) -> tuple[str, tuple[str, ...]]:
    return finding.id, finding.keys
