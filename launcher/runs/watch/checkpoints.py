"""veRL's checkpoints: `global_step_<k>` folders and a tracker file, written last.

The supervisor moves protected ones out of veRL's retention to the folders `protected` and `best` of the run.
"""

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from launcher.core.errors import UserError
from launcher.core.files import size
from launcher.core.format import GIB, amount, counted
from launcher.core.text import allowed_steps
from launcher.health.config import RunConfig
from launcher.health.keys import CHECKPOINT_ROOM, CHECKPOINTS_LACKING, CHECKPOINTS_TO_COME
from launcher.machine.host import disks
from launcher.preset.flow import times
from launcher.record.info import Head, Origin
from launcher.record.layout import RunDir
from launcher.record.machine import MachineSample, Saved
from launcher.runs.watch.steps import parent_of

TRACKER = "latest_checkpointed_iteration.txt"


def latest_checkpoint(run: RunDir) -> tuple[int, Path] | None:
    """Step and folder of the newest complete checkpoint, from the tracker file; later folders are incomplete."""
    with contextlib.suppress(OSError, ValueError):
        step = int((run.checkpoints / TRACKER).read_text().strip())
        if (folder := _folder(run, step)) is not None:
            return step, folder
    return None


def saving_words(head: Head) -> str:
    """When a run saves checkpoints; empty if never.

    veRL: `trainer/ppo/v1/trainer_base.py`, `save_freq`.
    """
    every = "every step" if head.saves == 1 else f"every {counted(head.saves, 'step')} and at the last"
    return f"it saves one {every}" if head.saves else ""


def checkpoint(run: RunDir, step: int | None) -> tuple[int, Path]:
    """Step and folder of a run's checkpoint [default of `step`: the newest]. Raises UserError."""
    newest = latest_checkpoint(run)
    if newest is None:
        saving = saving_words(run.read_head())
        hint = f"start again: {saving}" if saving else "set trainer.save_every to save them"
        raise UserError(f"run {run.id} has no complete checkpoint in {run.checkpoints}", hint)
    if step is None or step == newest[0]:
        return newest
    kept = checkpoints(run)
    if step not in kept:
        hint = allowed_steps(list(kept), "--checkpoint")
        raise UserError(f"--checkpoint {step}: run {run.id} has no checkpoint of this step", hint)
    return step, kept[step]


def checkpoints(run: RunDir, *places: Path) -> dict[int, Path]:
    """Steps and folders of a run's complete checkpoints, oldest first [default of `places`: all]."""
    newest, kept = latest_checkpoint(run), dict[int, Path]()
    for folder in (path.parent for each in places or _folders(run) for path in each.glob("global_step_*/actor")):
        step = folder.name.removeprefix("global_step_")
        if step.isdecimal() and newest and int(step) <= newest[0]:
            kept.setdefault(int(step), folder)
    return dict(sorted(kept.items()))


def kept_steps(run: RunDir) -> list[int] | None:
    """The steps of `checkpoints`; None if the run's folder never had any, such as for an external log."""
    return list(checkpoints(run)) if (run.checkpoints / TRACKER).exists() else None


def checkpoint_sizes(run: RunDir) -> dict[int, int]:
    """Bytes per complete checkpoint of a run, by step, oldest first."""
    return {step: size(folder) for step, folder in checkpoints(run).items()}


def checkpoint_words(sizes: Mapping[int, int]) -> str:
    """`10, 20, 30 (5.2 GiB each)`, or `10 (5.2 GiB), 20 (9.1 GiB)`; `none` without checkpoints."""
    words = {step: amount(taken) for step, taken in sorted(sizes.items())}
    if len(set(words.values())) == 1:
        return f"{', '.join(map(str, words))} ({next(iter(words.values()))}{' each' if len(words) > 1 else ''})"
    return ", ".join(f"{step} ({taken})" for step, taken in words.items()) or "none"


def disk_metrics(sample: MachineSample, keys: Mapping[str, Any], step: int, total: int | None) -> dict[str, float]:
    """ppo-tui's own metrics of a step: free disk space, and room for future checkpoints, as far as sampled."""
    metrics = {"machine/free_disk_gb": round(sample.disk.free / GIB, 3)} if sample.disk else {}
    if sample.saved is None or sample.room is None or total is None:
        return metrics
    more = to_come(keys, step, total, sample.saved.count)
    found = {CHECKPOINT_ROOM: sample.room, CHECKPOINTS_TO_COME: more, CHECKPOINTS_LACKING: max(more - sample.room, 0)}
    return metrics | {name: float(value) for (name,), value in found.items()}


def to_come(keys: Mapping[str, Any], step: int, total: int, count: int) -> int:
    """How many checkpoints a run adds to the `count` on disk: fewer than it writes if veRL removes old ones."""
    every, most = keys.get("trainer.save_freq"), RunConfig(keys).most_checkpoints
    due = (times(total, every, last=True) or 0) - (times(step, every, last=False) or 0)
    return due if most is None else min(due, max(most - count, 0))


def beginning(id: str, parent: Origin | None) -> tuple[int, Path] | None:
    """Step and folder of the checkpoint of `parent` that the run `id` began with; None if it no longer exists."""
    seen = {id}  # a damaged run.yaml may name its own run
    step = parent.step if parent is not None else None
    while step and parent is not None and parent.step == step and parent.run not in seen:
        seen.add(parent.run)
        if (its := parent_of(parent)) is None:
            return None
        if (folder := _folder(its, step)) is not None:
            return step, folder
        parent = its.read_info().parent
    return None


def _folder(run: RunDir, step: int) -> Path | None:
    """The complete checkpoint of a step."""
    places = (place / f"global_step_{step}" for place in _folders(run))
    return next((place for place in places if (place / "actor").is_dir()), None)


def _folders(run: RunDir) -> tuple[Path, ...]:
    return run.checkpoints, run.protected, run.best


class CheckpointDisk:
    """The disk of a run's checkpoints, and the checkpoints of an attempt after its starting step `begun`.

    A new checkpoint is measured once, since it may have thousands of files.
    """

    def __init__(self, run: RunDir, begun: int) -> None:
        self._run, self._begun = run, begun
        self._newest = (-1, 0)  # step and bytes

    def put_into(self, sample: MachineSample) -> MachineSample:
        """A copy of the sample with disk and checkpoints, as far as known."""
        run, newest = self._run, latest_checkpoint(self._run)
        if newest is not None and newest[0] != self._newest[0]:
            self._newest = newest[0], size(newest[1])
        count = sum(step > self._begun for step in checkpoints(run, run.checkpoints))
        saved = Saved(count, self._newest[1]) if newest is not None else None
        return replace(sample, disk=next(iter(disks([run.checkpoints, run.path])), None), saved=saved)
