"""What is over the limits that the user set: the oldest runs, and the oldest checkpoints of runs that ended."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from launcher.record.layout import RunDir, all_runs
from launcher.record.note import read_note
from launcher.record.state import RunState, current
from launcher.runs.act.delete import delete, size
from launcher.runs.watch.checkpoints import checkpoint, checkpoint_steps
from launcher.settings import Keep


@dataclass(frozen=True)
class Excess:
    """A run, or with `checkpoint` one of its checkpoints, that goes; `bytes` is what that frees."""

    run: RunDir
    bytes: int
    checkpoint: Path | None = None

    @property
    def path(self) -> Path:
        return self.checkpoint or self.run.path


def excess(keep: Keep) -> list[Excess]:
    """What is over the limits, in the order in which it goes.

    Never a run that goes on, has a note, is damaged or of a later ppo-tui, nor the newest checkpoint of a run
    that stays: a resume needs it.
    """
    runs = all_runs()
    states = {run.id: current(run, checks=False) for run in runs}
    over = runs[keep.runs :] if keep.runs is not None else []
    gone = [run for run in reversed(over) if _may_go(run, states[run.id])]
    found = [Excess(run, size(run.path)) for run in gone]
    if keep.checkpoints is None:
        return found
    left = [run for run in reversed(runs) if run not in gone]
    saved = [(run, path, size(path)) for run in left for path in _checkpoints(run)]
    surplus = sum(count for *_, count in saved) - keep.checkpoints
    for run, path, count in saved:
        if surplus <= 0:
            break
        if _may_go(run, states[run.id]) and path != _checkpoints(run)[-1]:
            found.append(Excess(run, count, path))
            surplus -= count
    return found


def remove(found: Sequence[Excess]) -> None:
    """Removes it. Raises UserError for a run that has begun to go on since, OSError."""
    for each in found:
        if each.checkpoint is None:
            delete(each.run)
        else:
            shutil.rmtree(each.checkpoint)


def _checkpoints(run: RunDir) -> list[Path]:
    return [checkpoint(run, step)[1] for step in checkpoint_steps(run)]


def _may_go(run: RunDir, state: RunState) -> bool:
    return not (state.going or state.damaged or state.later or str(read_note(run.note)))
