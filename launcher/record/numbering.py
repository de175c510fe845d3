"""The steps of a log without step numbers: the display of line numbers."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from launcher.record.json import Record

_STEP, _STEPS = re.compile(r"\b([Ss]tep (?:is )?)(\d+)\b(?!\.\d| s\b)"), re.compile(r"\b(\d+) (more |good )?steps?\b")
_NUMBERS = ("step", "since", "cleared")
S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Numbering(Record):
    """`every`: steps per logged line; 1 if lines have step numbers, 0 while unknown. `first`: step 1 is also logged, so
    that the second line is step `every`.
    """

    every: int = 1
    first: bool = False

    @property
    def unit(self) -> str:
        """The word for the unit of a number."""
        return "step" if self.every else "logged line"

    def step(self, line: int) -> int:
        """The step of a line; the line itself while `every` is unknown."""
        return max(1, (line - self.first) * self.every) if line and self.every else line

    def at(self, step: int) -> str:
        """The words for a step, as `step` returns it."""
        return f"{self.unit} {step}"

    def text(self, text: str) -> str:
        """A text of the health rules, which count each line as a step."""
        if self.every == 1:
            return text
        text = _STEPS.sub(lambda found: self._count(int(found[1]), found[2] or ""), text)
        return _STEP.sub(lambda found: f"{found[1].lower().replace('step', self.unit)}{self.step(int(found[2]))}", text)

    def _count(self, lines: int, kind: str) -> str:
        count = lines * (self.every or 1)
        return f"{count} {kind}{self.unit}{'' if count == 1 else 's'}"

    def displayed(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """The numbers and the message of a record, whose steps are lines, as they are displayed."""
        found = {name: record[name] for name in (*_NUMBERS, "message") if isinstance(record.get(name), (int, str))}
        return {name: self.text(each) if isinstance(each, str) else self.step(each) for name, each in found.items()}

    def json(self, value: Any) -> Any:
        """JSON with null steps and additional lines, while `every` is unknown."""
        if self.every or not isinstance(value, (Mapping, list, tuple)):
            return value
        if not isinstance(value, Mapping):
            return [self.json(each) for each in value]
        found: dict[str, Any] = {}
        for name, each in value.items():
            lines = name in _NUMBERS and type(each) is int
            found[name] = None if lines else self.json(each)
            if lines:
                found["line" if name == "step" else f"{name}_line"] = each
        return found


STEPS = Numbering()
"""For lines with step numbers."""


def shown(record: S, numbering: Numbering) -> S:
    """A record with its displayed steps: a level change, a check, a run's state."""
    if numbering.every == 1:
        return record
    fields = {name: getattr(record, name, None) for name in (*_NUMBERS, "message")}
    return replace(record, **numbering.displayed(fields))  # type: ignore[type-var]
