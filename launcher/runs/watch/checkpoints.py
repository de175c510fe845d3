"""veRL's checkpoints: `global_step_<k>` folders and a tracker file that is written last.

The supervisor moves those that it protects from veRL's retention to the folders `protected` and `best` of the run.
"""

import contextlib
from pathlib import Path

from launcher.core.errors import UserError
from launcher.core.text import allowed_steps
from launcher.record.info import Head
from launcher.record.layout import RunDir
from launcher.runs.watch.steps import parent_of

TRACKER = "latest_checkpointed_iteration.txt"


def latest_checkpoint(run: RunDir) -> tuple[int, Path] | None:
    """Step and folder of the newest complete checkpoint, which the tracker names; later folders are incomplete."""
    with contextlib.suppress(OSError, ValueError):
        step = int((run.checkpoints / TRACKER).read_text().strip())
        for path in _places(run, step):
            if (path / "actor").is_dir():
                return step, path
    return None


def checkpoint(run: RunDir, step: int | None, option: str = "--checkpoint") -> tuple[int, Path]:
    """Step and folder of a run's checkpoint, of the newest without `step`. Raises UserError, which names `option`."""
    newest = latest_checkpoint(run)
    if newest is None:
        saves = Head.read(run.run_yaml).saves
        hint = f"start again: the first one comes at step {saves}" if saves else "set trainer.save_every to save them"
        raise UserError(f"run {run.id} has no complete checkpoint in {run.checkpoints}", hint)
    if step is None or step == newest[0]:
        return newest
    kept = checkpoint_steps(run)
    if step not in kept:
        raise UserError(f"{option} {step}: run {run.id} has no checkpoint of this step", allowed_steps(kept, option))
    return step, next(path for path in _places(run, step) if (path / "actor").is_dir())


def checkpoint_steps(run: RunDir) -> list[int]:
    """The steps of a run's complete checkpoints, oldest first."""
    newest = latest_checkpoint(run)
    folders = [path for place in _folders(run) for path in place.glob("global_step_*/actor")]
    names = {path.parent.name.removeprefix("global_step_") for path in folders}
    return sorted(step for step in map(int, filter(str.isdecimal, names)) if newest and step <= newest[0])


def beginning(run: RunDir) -> tuple[int, Path] | None:
    """Step and folder of the checkpoint of another run that a fork began with; None if it no longer exists."""
    parent, seen = run.read_info().parent, {run.id}  # a damaged run.yaml may name its own run
    step = parent.step if parent is not None else None
    while step and parent is not None and parent.step == step and parent.run not in seen:
        seen.add(parent.run)
        if (its := parent_of(parent)) is None:
            return None
        if (folder := next((path for path in _places(its, step) if (path / "actor").is_dir()), None)) is not None:
            return step, folder
        parent = its.read_info().parent
    return None


def _places(run: RunDir, step: int) -> list[Path]:
    return [place / f"global_step_{step}" for place in _folders(run)]


def _folders(run: RunDir) -> tuple[Path, ...]:
    return run.checkpoints, run.protected, run.best
