"""The newest change to a run's settings: by a resume, a fork, or since an earlier run of its preset."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from launcher.core import paths
from launcher.record.events import Action, Event, LevelChange
from launcher.record.info import Edit, Origin
from launcher.record.layout import RunDir, all_runs
from launcher.record.levels import Level
from launcher.record.state import current
from launcher.runs.watch.history import Onset, alarms, ended
from launcher.runs.watch.parent import Parent
from launcher.runs.watch.run_settings import Difference, differences, last_settings, preset_edits

_ANOTHER = re.compile(r"(algorithm|recipe|data\.(train|val|custom_cls_\w+))$|(model|reward)\.")  # experiment
_MOST = 3  # settings by which it may differ
_APART = ("cluster.", "env.", "health.", "python", "sweep.", "trainer.")  # about place and duration, not about learning


@dataclass(frozen=True)
class Change:
    """Settings with their old and new values; `words` name the change, as in "undoes what the fork changed"."""

    words: str
    edits: tuple[Edit, ...]

    @property
    def undone(self) -> tuple[Edit, ...]:
        """The edits that undo the change; null is veRL's default."""
        return tuple(Edit(each.key, each.now, each.before) for each in self.edits)


def last_change(run: Parent, onset: Onset) -> Change | None:
    """The newest change of settings that may have caused a flag; None without one.

    A change is not a cause if the flag was active before it, or in the run without it. Another run must have ended well
    before this one started, with the same model, data, reward and estimator, and only a few other settings.
    """
    after, now = run.info.after, run.latest
    if _new_since_resume(run.events, onset.rule) and (edits := _learning(preset_edits(run.info, now))):
        return Change("the change of the resume", edits)
    if after is not None and after.step is not None:
        edits = () if onset.rule in alarms(_run_of(after)) else _learning(after.diff)
        return Change("what the fork changed", edits) if edits else None
    for each in [_run_of(after)] if after is not None else all_runs():
        if _well_before(each, run, onset):
            edits = _learning(preset_edits(last_settings(each)[0], now))
            if 0 < len(edits) <= _MOST and not any(_ANOTHER.match(edit.key) for edit in edits):
                return Change(f"the change since {each.id}", edits)
    return None


def last_good(run: Parent) -> tuple[RunDir, Sequence[Difference]] | None:
    """The newest run of the same preset that ended well before this one started, and their differences, versions
    included; None without one.
    """
    good = (each for each in all_runs() if _well_before(each, run, Onset("", 0, 0, Level.OK)))
    found = next(good, None)
    return None if found is None else (found, differences([last_settings(found)[0], run.latest]))


def _run_of(origin: Origin) -> RunDir:
    return RunDir(paths.runs_dir() / Path(origin.run).name)


def _new_since_resume(events: Iterable[Event], rule: str) -> bool:
    """Whether a flag first rose after the newest resume."""
    up = new = False
    for event in events:
        what = event.what
        if isinstance(what, Action) and what.verb == "resume":
            new = not up
        up = up or (isinstance(what, LevelChange) and what.rule == rule and what.alarming)
    return new


def _well_before(other: RunDir, run: Parent, onset: Onset) -> bool:
    """Whether another run of this preset ended without flags before a run started."""
    if other.id == run.id or other.read_head().of_preset != run.info.of_preset:
        return False
    state = current(other)
    well = state.state == "finished" and state.verdict in ("OK", "NOTICE") and (state.step or 0) >= onset.rose
    return well and ended(state) <= (run.info.created or 0.0) and onset.rule not in alarms(other)


def _learning(edits: Iterable[Edit]) -> tuple[Edit, ...]:
    """Changed settings that affect training."""
    return tuple(each for each in edits if not each.key.startswith(_APART) and each.before != each.now)
