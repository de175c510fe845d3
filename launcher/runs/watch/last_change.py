"""The newest change of a run's settings: by a resume, as a fork, or since an earlier run of its preset."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from launcher.core import paths
from launcher.record.events import Action, Event, LevelChange
from launcher.record.info import Edit
from launcher.record.layout import RunDir, all_runs
from launcher.record.state import current
from launcher.runs.watch.history import Onset, alarms
from launcher.runs.watch.parent import Parent
from launcher.runs.watch.run_settings import last_settings, preset_edits

_APART = ("cluster.", "env.", "health.", "python", "sweep.", "trainer.")  # where and how long, not what is learned


@dataclass(frozen=True)
class Change:
    """Settings with their values before and now; `words` name it, as in "undoes what the fork changed"."""

    words: str
    edits: tuple[Edit, ...]

    @property
    def undone(self) -> tuple[Edit, ...]:
        """The edits that restore all of them; null is veRL's own value."""
        return tuple(Edit(each.key, each.now, each.before) for each in self.edits)


def last_change(run: Parent, onset: Onset) -> Change | None:
    """The newest change of settings that may have caused a flag; None if there is none.

    A change is not a cause if the flag was up before it, or in the run without it.
    """
    after, now = run.info.after, run.latest
    if _new_since_resume(run.events, onset.rule) and (edits := _learning(preset_edits(run.info, now))):
        return Change("the change of the resume", edits)
    if after is not None and onset.rule not in alarms(RunDir(paths.runs_dir() / Path(after.run).name)):
        words = f"the change since {after.run}" if after.step is None else "what the fork changed"
        if edits := _learning(after.diff):
            return Change(words, edits)
    earlier = _well_before(run, onset) if after is None else None
    edits = _learning(preset_edits(last_settings(earlier)[0], now)) if earlier is not None else ()
    return Change(f"the change since {earlier.id}", edits) if earlier is not None and edits else None


def _new_since_resume(events: Iterable[Event], rule: str) -> bool:
    """Whether a flag rose for the first time after the newest resume."""
    up = new = False
    for event in events:
        what = event.what
        if isinstance(what, Action) and what.verb == "resume":
            new = not up
        up = up or (isinstance(what, LevelChange) and what.rule == rule and what.alarming)
    return new


def _well_before(run: Parent, onset: Onset) -> RunDir | None:
    """The newest earlier run of the same preset that finished and had no flag at that step."""
    for each in all_runs():
        if each.id == run.id or each.read_head().of_preset != run.info.of_preset:
            continue
        state, created = current(each, checks=False), each.read_info().created or math.inf
        whole = state.state == "finished" and (state.step or 0) >= onset.rose
        if whole and created < (run.info.created or 0.0) and onset.rule not in alarms(each):
            return each
    return None


def _learning(edits: Iterable[Edit]) -> tuple[Edit, ...]:
    """The differing settings that affect training."""
    return tuple(each for each in edits if not each.key.startswith(_APART) and each.before != each.now)
