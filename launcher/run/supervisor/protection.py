"""Keeps the checkpoint from before a run's trouble, which veRL would remove for newer ones."""

import contextlib
import shutil

from launcher.record.check import Check
from launcher.record.events import LevelChange
from launcher.record.layout import RunDir
from launcher.record.levels import Level
from launcher.run.reading.checkpoints import checkpoint, checkpoint_steps
from launcher.run.reading.onset import check_counts, onset_of


def protect(run: RunDir, change: LevelChange, checks: list[Check]) -> int | None:
    """Moves the newest checkpoint before the onset of the flag that rose out of veRL's reach; returns its step.

    One at a time: a flag that rises while others of its level are up belongs to their trouble, whose checkpoint stays;
    else its own takes the place of the earlier. veRL passes over a folder that is gone (verl
    `utils/checkpoint/checkpoint_manager.py: remove_previous_save_local_path`). Raises OSError.
    """
    others = any(c.level >= change.after and check_counts(c) and (c.since or change.step) < change.step for c in checks)
    own = next((check for check in checks if check.rule == change.rule), Check(change.rule))
    worse = change.before >= Level.WARN
    if not change.alarming or not check_counts(own) or others or worse:
        return None
    onset = onset_of(change, own.debounce)
    before = [step for step in checkpoint_steps(run) if step < onset.step]
    if not before:
        return None
    step, folder = checkpoint(run, before[-1])
    if folder.parent == run.protected:
        return None
    run.protected.mkdir(exist_ok=True)
    for earlier in run.protected.iterdir():
        shutil.rmtree(earlier, ignore_errors=True)
    with contextlib.suppress(FileNotFoundError):  # veRL removed it at this moment
        folder.rename(run.protected / folder.name)
        return step
    return None
