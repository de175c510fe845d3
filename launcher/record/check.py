"""A row of the checklist: a health rule, its level, and its explanation."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from launcher.record.fix import Fix
from launcher.record.json import QUESTION, RARE, Record, renamed
from launcher.record.levels import Level, crossed
from launcher.record.problem import Rival


@dataclass(frozen=True, slots=True)
class Bound(Record):
    """One limit of a rule as it applies now: it is crossed while `now side value` holds.

    `metric` is the compared metric, "" for the first one of the check; `now` is its value at the last judged step, None
    without a value. `series` is the index in the check's `keys` of the metric whose scale it uses, -1 for none.
    `holds`: the level is on, and this is the limit at which it clears; `rises` is the one at which it rises, None where
    that does not apply now. A `fixed` limit stays the same during the run.
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
        """Whether `x` is beyond it."""
        return crossed(x, self.side, self.value)


@dataclass(frozen=True, slots=True)
class Check(Record):
    """The result of one health rule.

    `since` is the step at which the current flag rose. After a flag has cleared, `cleared` is that step and `was` its
    worst level. `keys` are the metrics to draw, the judged one first; `bounds` are all limits as they apply now, metric
    by metric in the order in which they are crossed; empty while the rule judges nothing. A level is raised when
    `debounce[0]` of the last `debounce[1]` steps cross a limit, and clears after `debounce[2]` steps that cross none.
    `usual` is the past value that the first metric is compared with, if any. `cause` is the rule of the flag that this
    one follows from, whose fixes it has; "" for none. `lead` is the cause that evidence supports best, None where none
    does; `rivals` are other causes that are possible.
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
        """The cause that leads, otherwise its name."""
        return self.name if self.lead is None else self.lead.title

    @property
    def title(self) -> str:
        """The heading, and the flag that it follows from."""
        return f"{self.heading} (from {self.cause})" if self.cause else self.heading

    @property
    def symptom(self) -> str:
        """Its message; with its name in front where the heading is the cause."""
        return self.message if self.lead is None else f"{self.name}: {self.message}"

    @property
    def on(self) -> bool:
        """Whether a flag is up."""
        return self.level > Level.OK


def flags_of(checks: Iterable[Check]) -> tuple[str, ...]:
    """The rules with a flag that counts, the worst first."""
    on = (check for check in checks if check.on and not check.muted)
    return tuple(check.rule for check in sorted(on, key=lambda check: -check.level))
