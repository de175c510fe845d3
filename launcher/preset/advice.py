"""What to do with a field when a run raises a flag: the fixes of `launcher.health`, by field."""

from __future__ import annotations

from dataclasses import dataclass

from launcher.health.fixes import FIXES, Fix
from launcher.health.rules import ALL
from launcher.preset.fields import Spec


@dataclass(frozen=True)
class Advice:
    """`rule` is the flag that helps against, such as KL-1, `question` what it asks of a run."""

    rule: str
    question: str
    fix: Fix

    @property
    def words(self) -> str:
        """`lower 2–5×`, `set True`, `check: is it set and finite?`."""
        colon = ":" if self.fix.direction == "check" and self.fix.note else ""
        return f"{self.fix.direction}{colon} {self.fix.note}".rstrip()


def advice(spec: Spec) -> list[Advice]:
    """What a field is to be changed to, flag by flag in the order of the checklist; nothing for most."""
    return [
        Advice(rule.id, rule.question, fix)
        for rule in ALL
        for fix in FIXES.get(rule.id, ())
        if spec.key and fix.key == spec.key
    ]
