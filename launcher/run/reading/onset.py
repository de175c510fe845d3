"""When the trouble of a run began."""

from dataclasses import dataclass

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


def onset_of(change: LevelChange, debounce: tuple[int, ...]) -> Onset:
    """A flag is up after some of the last `debounce[1]` steps crossed its limit: the oldest may be the first."""
    window = debounce[1] if len(debounce) > 1 else 1
    return Onset(change.rule, max(change.step - window + 1, 1), change.step, change.after)


def first_onset(run: RunDir, rule: str | None = None) -> Onset | None:
    """Where the first flag of a run began that became CRITICAL, or else WARN; of `rule` alone when one is named.

    Muted rules count only when they are named. None without such a flag.
    """
    checks = {check.rule: check for check in current(run).checks}
    found = [
        onset_of(change, checks[change.rule].debounce if change.rule in checks else (2, 3, 5))
        for event in read_events(run.events)
        if isinstance(change := event.what, LevelChange)
        and change.alarming
        and (change.rule == rule if rule else change.rule not in checks or not checks[change.rule].muted)
    ]
    if not found:
        return None
    worst = max(onset.level for onset in found)
    first = next(onset for onset in found if onset.level == worst)
    return next(onset for onset in found if onset.rule == first.rule)
