"""The checks, and what runs them. A check is a plain function: what is judged in, findings out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from launcher.preflight import config
from launcher.preflight.finding import Finding, in_order
from launcher.preflight.subject import Subject, subject
from launcher.preset.files import LoadedPreset

Check = Callable[[Subject], Iterable[Finding]]

QUICK: tuple[Check, ...] = config.RULES
"""At most a second together; neither torch nor veRL is imported."""

SLOW: tuple[tuple[str, Check], ...] = ()
"""What reads files, asks the network or starts processes, each with the words of its progress."""


@dataclass(frozen=True)
class Report:
    """Everything that is known about a preset; `ok` when no error is in it."""

    findings: list[Finding]
    memory: dict[str, Any]

    @property
    def ok(self) -> bool:
        return not any(finding.level == "error" for finding in self.findings)

    def as_json(self) -> dict[str, Any]:
        """What `check --json` prints."""
        return {
            "ok": self.ok,
            "findings": [finding.as_json() for finding in self.findings],
            "memory": self.memory,
        }


def quick(subject: Subject) -> list[Finding]:
    """What can be said at once, errors first."""
    return in_order(finding for check in QUICK for finding in check(subject))


def slow(
    subject: Subject, progress: Callable[[str], None], cancelled: Callable[[], bool]
) -> Iterator[Finding]:
    """What takes seconds, as it is found; `cancelled` is asked before each check."""
    for title, check in SLOW:
        if cancelled():
            return
        progress(title)
        yield from check(subject)


def check(
    loaded: LoadedPreset, *, assume: str | None = None, progress: Callable[[str], None] = lambda _: None
) -> Report:
    """Every check of a preset for this machine, or for one that is assumed. Raises UserError."""
    what = subject(loaded, assume=assume)
    findings = [*quick(what), *slow(what, progress, lambda: False)]
    return Report(in_order(findings), {})
