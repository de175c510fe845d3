"""A row of the checklist: a health rule, its level, and all that explains it."""

from dataclasses import dataclass

from launcher.record.json import Record
from launcher.record.levels import Bound, Level


@dataclass(frozen=True, slots=True)
class Suggestion(Record):
    """One thing to try. `key` is the veRL key that it changes, None for advice without one."""

    key: str | None
    text: str


@dataclass(frozen=True, slots=True)
class Check(Record):
    """What one health rule says of a run.

    `since` is the step at which the present flag came on. After a flag has cleared, `cleared` is the step
    of that and `was` the worst level it had. `keys` are the metrics to draw, the judged one first; `bounds`
    the limits on that one as they are now, none where the rule judges something that is not on its scale.
    """

    rule: str
    question: str = ""
    level: Level = Level.N_A
    message: str = ""
    since: int | None = None
    cleared: int | None = None
    was: Level | None = None
    family: str = ""
    muted: bool = False
    keys: tuple[str, ...] = ()
    bounds: tuple[Bound, ...] = ()
    fixes: tuple[Suggestion, ...] = ()

    @property
    def on(self) -> bool:
        """Whether a flag is up."""
        return self.level > Level.OK
