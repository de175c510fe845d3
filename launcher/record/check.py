"""A row of the checklist: a health rule, its level, and all that explains it."""

from dataclasses import dataclass, field

from launcher.record.json import QUESTION, RARE, Record, renamed
from launcher.record.levels import Level, crossed


@dataclass(frozen=True, slots=True)
class Suggestion(Record):
    """One thing to try. `key` is the veRL key that it changes, None for advice without one."""

    key: str | None
    text: str


@dataclass(frozen=True, slots=True)
class Bound(Record):
    """One limit of a rule as it applies now: it is crossed while `now side value` holds.

    `metric` says what is compared, "" for the first metric of the check; `now` is the value of another one at the
    last step judged, None where the step gave none. `series` is the place in the check's `keys` of the metric
    whose scale it uses, -1 for none. Of a level that is on, the limit is the one at which it lets go: `holds`.
    A `fixed` limit does not move with the run.
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

    def on(self, x: float) -> bool:
        """Whether `x` is beyond it."""
        return crossed(x, self.side, self.value)


@dataclass(frozen=True, slots=True)
class Check(Record):
    """What one health rule says of a run.

    `since` is the step at which the present flag came on. After a flag has cleared, `cleared` is the step
    of that and `was` the worst level it had. `keys` are the metrics to draw, the judged one first; `bounds` are
    all limits as they apply now, metric by metric and in the order in which they are crossed, none while the rule
    judges nothing. A level is raised when `debounce[0]` of the last `debounce[1]` steps cross a limit, and lets
    go after `debounce[2]` steps that cross none of its own. `usual` is what the first metric is compared with, where
    that is its own past.
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
    fixes: tuple[Suggestion, ...] = ()
    usual: float | None = field(default=None, metadata=RARE)

    @property
    def on(self) -> bool:
        """Whether a flag is up."""
        return self.level > Level.OK
