"""veRL's checkpoints: `global_step_<k>` folders and a tracker file that is written last.

One that the supervisor protects from veRL's retention lies in the folder `protected` of the run.
"""

import contextlib
from pathlib import Path

from launcher.errors import UserError
from launcher.record.layout import RunDir

TRACKER = "latest_checkpointed_iteration.txt"


def latest_checkpoint(run: RunDir) -> tuple[int, Path] | None:
    """Step and folder of the newest complete checkpoint.

    The tracker names it. A `global_step_<k>` beyond the tracker was cut off while it was being saved.
    """
    with contextlib.suppress(OSError, ValueError):
        step = int((run.checkpoints / TRACKER).read_text().strip())
        for path in _places(run, step):
            if (path / "actor").is_dir():
                return step, path
    return None


def checkpoint(run: RunDir, step: int | None, option: str = "--step") -> tuple[int, Path]:
    """Step and folder of a run's checkpoint, of the newest one when no step is named. Raises UserError.

    `option` is what the step was named with.
    """
    newest = latest_checkpoint(run)
    if newest is None:
        raise UserError(
            f"run {run.id} has no complete checkpoint in {run.checkpoints}; set trainer.save_every to save checkpoints"
        )
    if step is None or step == newest[0]:
        return newest
    kept = checkpoint_steps(run)
    if step not in kept:
        there = ", ".join(str(each) for each in kept)
        raise UserError(f"{option} {step}: run {run.id} has no checkpoint of this step; use one of {there}")
    return step, next(path for path in _places(run, step) if (path / "actor").is_dir())


def checkpoint_steps(run: RunDir) -> list[int]:
    """The steps of a run's complete checkpoints, oldest first."""
    newest = latest_checkpoint(run)
    folders = [path for place in (run.checkpoints, run.protected) for path in place.glob("global_step_*/actor")]
    names = {path.parent.name.removeprefix("global_step_") for path in folders}
    return sorted(step for step in map(int, filter(str.isdecimal, names)) if newest and step <= newest[0])


def _places(run: RunDir, step: int) -> list[Path]:
    return [place / f"global_step_{step}" for place in (run.checkpoints, run.protected)]
