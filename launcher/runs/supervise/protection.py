"""Keeps checkpoints that veRL would replace with newer ones, and requests one when a flag rises."""

import contextlib
import statistics
from collections.abc import Mapping, Sequence

from launcher.core.files import discard, make_folder, move_in
from launcher.health import keys
from launcher.metrics.records import StepRecord
from launcher.preset.alerting import AlertSettings
from launcher.record.check import Check
from launcher.record.events import LevelChange
from launcher.record.info import RunInfo
from launcher.record.layout import AttemptDir, RunDir
from launcher.record.levels import Level
from launcher.runs.watch.checkpoints import checkpoint, checkpoints
from launcher.runs.watch.history import check_counts, onset_of


class Keeper:
    """Protects the checkpoints of a run by `trainer.keep_best` and `health.checkpoint_on` of its preset."""

    def __init__(self, run: RunDir, attempt: AttemptDir, info: RunInfo) -> None:
        trainer = (info.preset or {}).get("trainer")
        best = trainer.get("keep_best") if isinstance(trainer, Mapping) else None
        self._run, self._attempt, self._best = run, attempt, best if isinstance(best, int) else 0
        self._asked_by = AlertSettings.read(info.health).checkpoint_on
        self._scores: dict[int, float] = {}  # the mean of the headline scores by step
        self._kept: set[int] = set()

    def rose(self, change: LevelChange, checks: list[Check]) -> str | None:
        """Keeps the checkpoint before a new flag, or requests one from veRL; returns this action. Raises OSError."""
        if change.alarming and change.rule in self._asked_by:
            self._attempt.save_now.touch()
        step = protect(self._run, change, checks)
        return None if step is None else f"the checkpoint of step {step}, from before {change.rule}, is kept for a fork"

    def took(self, records: Sequence[StepRecord]) -> None:
        """Takes in new steps: a validation may change the best checkpoints. Raises OSError."""
        for record in records if self._best else ():
            values = [value for key, value in record.data.items() if keys.is_validation_score(key)]
            if values:
                self._scores[record.step] = statistics.fmean(values)
                self._keep_best()

    def removed(self) -> tuple[int, ...]:
        """The checkpoints that disappeared since the last call."""
        before, self._kept = self._kept, set(checkpoints(self._run))
        return tuple(sorted(before - self._kept))

    def _keep_best(self) -> None:
        """Moves the checkpoints of the best validations out of veRL's reach, then removes the replaced ones, or none if
        veRL removed a better one meanwhile.
        """
        saved = [step for step in checkpoints(self._run) if step in self._scores]
        best = sorted(saved, key=lambda step: (self._scores[step], step))[-self._best :]
        make_folder(self._run.best)
        folders = {step: checkpoint(self._run, step)[1] for step in saved}
        reachable = [folders[step] for step in best if folders[step].parent == self._run.checkpoints]
        if all(move_in(folder, self._run.best) for folder in reachable):
            for step in saved:
                if step not in best and folders[step].parent == self._run.best:
                    discard(folders[step])


def protect(run: RunDir, change: LevelChange, checks: list[Check]) -> int | None:
    """Moves the newest checkpoint before a flag's onset out of veRL's reach; returns its step.

    Only one is kept: the checkpoint of another active flag of this level stays; otherwise the new one replaces it.
    Raises OSError.
    """
    kept = [path for path in run.protected.glob("*") if not path.name.startswith(".")]
    up = [c for c in checks if c.level >= change.after and check_counts(c) and c.rule != change.rule]
    since = [check.since or change.step for check in up]
    others = bool(kept) and any(step < change.step for step in since)
    own = next((check for check in checks if check.rule == change.rule), Check(change.rule))
    worse = change.before >= Level.WARN
    if not change.alarming or not check_counts(own) or others or worse:
        return None
    trouble = min([onset_of(change, own.debounce).step, *since])  # another flag's onset, if it kept no checkpoint
    before = [step for step in checkpoints(run) if step < trouble]
    if not before:
        return None
    step, folder = checkpoint(run, before[-1])
    if folder.parent == run.protected:
        return None
    make_folder(run.protected)
    # veRL may remove it at this moment (`utils/checkpoint/checkpoint_manager.py`), and skips a folder that is missing
    if not move_in(folder, run.protected):
        return None
    for earlier in kept:
        if earlier.name != folder.name:
            with contextlib.suppress(OSError):  # the next one replaces it
                discard(earlier)
    return step
