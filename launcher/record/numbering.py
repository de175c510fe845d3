"""The steps of a log without step numbers: the display of line numbers."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from launcher.core.format import number
from launcher.record.json import Record

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

    def place(self, line: int) -> str:
        """The words for a line: `step 120`; `logged line 12` while `every` is unknown."""
        return self.at(self.step(line))

    def span(self, lines: float) -> float:
        """The number of steps that `lines` lines span; `lines` while `every` is unknown."""
        return lines * (self.every or 1)

    def count(self, lines: float, kind: str = "") -> str:
        """The words for a number of lines: `120 steps`, `1 more step`, `12k steps`; `12 logged lines`."""
        steps = self.span(lines)
        return f"{number(steps)} {kind}{self.unit}{'' if steps == 1 else 's'}"

    def displayed(self, record: Mapping[str, Any]) -> dict[str, int]:
        """The numbers of a record, whose steps are lines, as they are displayed."""
        return {name: self.step(line) for name in _NUMBERS if isinstance(line := record.get(name), int)}

    def shown(self, record: S) -> S:
        """A level change, a check or a run's state with its displayed steps."""
        return replace(record, **self.displayed({name: getattr(record, name, None) for name in _NUMBERS}))  # type: ignore[type-var]

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
