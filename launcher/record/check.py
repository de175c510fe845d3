"""A row of the checklist: a health rule, its level, and its explanation."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from launcher.record.fix import Fix
from launcher.record.json import QUESTION, RARE, Record, renamed
from launcher.record.levels import Level, crossed
from launcher.record.problem import Rival


@dataclass(frozen=True, slots=True)
class Bound(Record):
    """One current limit of a rule: crossed while `now side value` holds.

    `metric`: the compared metric, "" for the check's first one. `now`: its value at the last judged step, or None.
    `series`: index in the check's `keys` of the metric with the same scale, -1 for none. `holds`: the level is active,
    and this limit clears it; `rises`: the limit that raises it, None if not applicable now. A `fixed` limit is constant
    during the run.
    """

    level: Level
    side: str
    value: float
    metric: str = field(default="", metadata=RARE | renamed("figure"))
    now: float | None = field(default=None, metadata=RARE)
    series: int = field(default=0, metadata=RARE)
    crossed: bool = field(default=False, metadata=RARE)
    holds: bool = field(default=False, metadata=RARE)
    fixed: bool = field(default=False, metadata=RARE)
    rises: float | None = field(default=None, metadata=RARE)

    def on(self, x: float) -> bool:
        """Whether `x` crosses the limit."""
        return crossed(x, self.side, self.value)


@dataclass(frozen=True, slots=True)
class Check(Record):
    """The result of one health rule.

    `since`: step at which the current flag rose. `cleared`, `was`: step and worst level of the last cleared flag.
    `keys`: metrics to draw, the judged one first. `bounds`: all current limits, by metric, in the order of crossing;
    empty while not judged. A level rises when `debounce[0]` of the last `debounce[1]` steps cross a limit, and clears
    after `debounce[2]` steps without one. `usual`: past value that the first metric is compared with, if any. `cause`:
    rule of the flag that caused this one and supplies its fixes; "" for none. `lead`: best supported cause, or None;
    `rivals`: other possible causes.
    """

    rule: str
    name: str = field(default="", metadata=QUESTION)
    level: Level = Level.N_A
    message: str = ""
    since: int | None = None
    cleared: int | None = None
    was: Level | None = None
    family: str = ""
    muted: bool = False
    keys: tuple[str, ...] = ()
    bounds: tuple[Bound, ...] = ()
    debounce: tuple[int, ...] = field(default=(2, 3, 5), metadata=RARE)
    fixes: tuple[Fix, ...] = ()
    usual: float | None = field(default=None, metadata=RARE)
    cause: str = field(default="", metadata=RARE)
    lead: Rival | None = field(default=None, metadata=RARE)
    rivals: tuple[Rival, ...] = field(default=(), metadata=RARE)

    @property
    def heading(self) -> str:
        """The leading cause, otherwise its name."""
        return self.name if self.lead is None else self.lead.title

    @property
    def title(self) -> str:
        """The heading, and the flag that caused it."""
        return f"{self.heading} (from {self.cause})" if self.cause else self.heading

    @property
    def symptom(self) -> str:
        """Its message; preceded by its name if the heading is the cause."""
        return self.message if self.lead is None else f"{self.name}: {self.message}"

    @property
    def on(self) -> bool:
        """Whether it has a flag."""
        return self.level > Level.OK


def flags_of(checks: Iterable[Check]) -> tuple[str, ...]:
    """The rules with a counting flag, worst first."""
    on = (check for check in checks if check.on and not check.muted)
    return tuple(check.rule for check in sorted(on, key=lambda check: -check.level))
