"""Helpers of rules: findings, and valid numbers."""

import bisect
import functools
from collections.abc import Callable, Iterator
from dataclasses import replace

from launcher.check.finding import Finding
from launcher.check.subject import Subject
from launcher.core.format import counted
from launcher.record.fix import Fix
from launcher.verl.programs import Found

Findings = Iterator[Finding]

Rule = Callable[[Subject], Findings]


def of_registry(rule: Rule) -> Rule:
    """A rule about names that veRL registers: its errors become warnings if the user's code may register them."""

    def judged(subject: Subject) -> Findings:
        own = isinstance(subject.config, Found)  # the user's program may register names
        return (each for each in rule(subject) if not own or any(map(subject.is_set, each.keys)))

    return _doubted(functools.wraps(rule)(judged), lambda subject: subject.registering)


def of_trainer(rule: Rule) -> Rule:
    """A rule about veRL's trainer and workers: its errors become warnings if another program trains."""
    return _doubted(rule, lambda subject: subject.program)


def of_keys(rule: Rule) -> Rule:
    """A rule about configuration names or keys: its errors become warnings if they are unknown."""
    return _doubted(rule, lambda subject: subject.program if subject.config is None else "")


def _doubted(rule: Rule, doubt: Callable[[Subject], str]) -> Rule:
    """The rule with errors reduced to warnings if `doubt` names a reason."""

    @functools.wraps(rule)
    def judged(subject: Subject) -> Findings:
        who = doubt(subject)
        for each in rule(subject):
            if each.level != "error" or not who:
                yield each
            else:
                message, fix = f"{each.message}; this may not hold for {who}", f"{each.fix}, unless your code differs"
                yield replace(each, level="warning", message=message, fixes=(Fix(fix),))

    return judged


def dividing(size: int, wish: int) -> list[int]:
    """The divisors of `size` next to `wish`, the smaller first: `dividing(64, 24)` is [16, 32]."""
    divisors = [number for number in range(1, size + 1) if size % number == 0]
    at = bisect.bisect(divisors, wish)
    return divisors[max(0, at - 1) : at + 1]


def multiples(step: int, wish: int) -> list[int]:
    """The multiples of `step` next to `wish`, the smaller first: `multiples(8, 60)` is [56, 64]."""
    below = wish // step * step
    return [number for number in (below, below + step) if number > 0]


def gpu_count(count: int) -> str:
    """`1 GPU`, `8 GPUs`."""
    return counted(count, "GPU")


def machines(count: int) -> str:
    """`1 machine`, `4 machines`."""
    return counted(count, "machine")
