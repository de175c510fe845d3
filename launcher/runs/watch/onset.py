"""When the trouble of a run began."""

from dataclasses import dataclass

from launcher.health.catalogue import families
from launcher.record.check import Check
from launcher.record.events import LevelChange, read_events
from launcher.record.layout import RunDir
from launcher.record.levels import Level
from launcher.record.state import current


@dataclass(frozen=True)
class Onset:
    """The first of the steps that raised a flag. `rose` is the step at which it was up, at `level`."""

    rule: str
    step: int
    rose: int
    level: Level

    @property
    def told(self) -> str:
        """The flag with the step that the events and the dashboard name."""
        return f"{self.rule} rose at step {self.rose}"


def onset_of(change: LevelChange, debounce: tuple[int, ...], first: int = 1) -> Onset:
    """A flag is up after some of the last `debounce[1]` steps crossed its limit: the oldest may be the first.

    `first` is the first step of the run.
    """
    window = debounce[1] if len(debounce) > 1 else 1
    return Onset(change.rule, max(change.step - window + 1, first), change.step, change.after)


def check_counts(check: Check) -> bool:
    """Whether a flag of it is trouble of the training, for which there may be another setting."""
    family = families().get(check.family)
    return not check.muted and not (family and family.of_machine)


def first_onset(run: RunDir, rule: str | None = None) -> Onset | None:
    """Where the flag of a run began that became CRITICAL, else WARN, the first of several; of `rule` when one is named.

    Muted rules and those about the machine count only when they are named. None without such a flag.
    """
    checks = {check.rule: check for check in current(run).checks}
    parent = run.read_info().parent
    first = (parent.step or 0) + 1 if parent is not None else 1
    found = []
    for event in read_events(run.events):
        change = event.what
        if isinstance(change, LevelChange) and change.alarming:
            check = checks.get(change.rule) or Check(change.rule)
            if change.rule == rule if rule else check_counts(check):
                found.append(onset_of(change, check.debounce, first))
    worst = max((onset.level for onset in found), default=None)
    serious = {onset.rule for onset in found if onset.level == worst}
    return next((onset for onset in found if onset.rule in serious), None)
