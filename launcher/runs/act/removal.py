"""Removes runs with everything they wrote, what ended runs left behind, and what exceeds the limits of the user."""

import contextlib
import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from launcher.core.errors import of_file
from launcher.record.control import alone
from launcher.record.layout import RunDir, all_runs
from launcher.record.note import read_note
from launcher.record.process import ProcessId, processes_of_runs
from launcher.record.ray_session import RaySession, left_by
from launcher.record.state import RunState, current
from launcher.runs.supervise.spawn import ended
from launcher.runs.watch.checkpoints import checkpoint, checkpoint_steps
from launcher.runs.watch.possible import Verb, require
from launcher.settings import Keep

_DOOMED = ".deleted-"


def check(run: RunDir) -> None:
    """Raises UserError for a run that has not ended."""
    require(run, Verb.DELETE, ended(run), run.read_head())


def delete(run: RunDir) -> None:
    """Removes an ended run and the files that its Ray left. Raises UserError for a run that has not ended.

    The run leaves the list at once; removing hundreds of gigabytes of checkpoints takes longer. The next delete removes
    what a killed one left.
    """
    with alone(run):
        check(run)
        for session in left_by(run):
            shutil.rmtree(session.path, ignore_errors=True)
        try:
            run.path.rename(run.path.with_name(_DOOMED + run.id))
        except OSError as error:
            raise of_file(f"cannot delete run {run.id}", error) from None
    for doomed in run.path.parent.glob(f"{_DOOMED}*"):
        shutil.rmtree(doomed, ignore_errors=True)


def size(path: Path) -> int:
    """Bytes that the files of a folder take on the disk; a console with a gap takes less than its length."""
    total = 0
    for folder, _, files in os.walk(path):
        for name in files:
            with contextlib.suppress(OSError):
                status = os.lstat(f"{folder}/{name}")
                total += min(status.st_size, status.st_blocks * 512)
    return total


_PATIENCE = 3.0  # seconds in which killed processes must be gone


@dataclass(frozen=True)
class Leftover:
    """A process (`process`) or a folder (`session`) of a run that has ended; `size` is in bytes."""

    run: str
    name: str
    size: int
    process: ProcessId | None = None
    session: RaySession | None = None


def leftovers() -> list[Leftover]:
    """Leftovers that may be removed: only of runs in this user's list, found by environment and records."""
    over = {run.id: run for run in all_runs() if _over(current(run, checks=False))}
    left = []
    for pid, run_id in processes_of_runs():
        with contextlib.suppress(psutil.Error):
            if run_id in over and (process := ProcessId.of(pid)):
                known = psutil.Process(pid)
                left.append(Leftover(run_id, f"{pid} {known.name()}", known.memory_info().rss, process))
    for run in over.values():
        left += [Leftover(run.id, each.path, size(Path(each.path)), session=each) for each in left_by(run)]
    return left


def remove_leftovers(items: list[Leftover]) -> list[Leftover]:
    """Kills the processes and deletes the folders; returns those that remain."""
    for each in items:
        if each.process is not None and each.process.alive():
            with contextlib.suppress(psutil.Error):
                psutil.Process(each.process.pid).kill()
        if each.session is not None and each.session.left:
            shutil.rmtree(each.session.path, ignore_errors=True)
    deadline = time.monotonic() + _PATIENCE
    while (left := [each for each in items if _left(each)]) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


def _left(item: Leftover) -> bool:
    return item.process.alive() if item.process is not None else bool(item.session and item.session.left)


def _over(state: RunState) -> bool:
    """Whether the end of a run is recorded; a run that may still work has no leftovers."""
    return not state.live and state.driver_alive is None


@dataclass(frozen=True)
class Excess:
    """A run to remove, or with `checkpoint` one of its checkpoints; `bytes` is the space that this frees."""

    run: RunDir
    bytes: int
    checkpoint: Path | None = None

    @property
    def path(self) -> Path:
        return self.checkpoint or self.run.path


def excess(keep: Keep) -> list[Excess]:
    """Runs and checkpoints beyond the limits, in the order of removal.

    It never includes a run that has not ended, has a note, is damaged or from a later ppo-tui, nor the newest
    checkpoint of a run that stays, because a resume needs it.
    """
    runs = all_runs()
    states = {run.id: current(run, checks=False) for run in runs}
    over = runs[keep.runs :] if keep.runs is not None else []
    gone = [run for run in reversed(over) if _may_go(run, states[run.id])]
    excesses = [Excess(run, size(run.path)) for run in gone]
    if keep.checkpoints is None:
        return excesses
    left = [run for run in reversed(runs) if run not in gone]
    saved = [(run, path, size(path)) for run in left for path in _checkpoints(run)]
    surplus = sum(count for *_, count in saved) - keep.checkpoints
    for run, path, count in saved:
        if surplus <= 0:
            break
        if _may_go(run, states[run.id]) and path != _checkpoints(run)[-1]:
            excesses.append(Excess(run, count, path))
            surplus -= count
    return excesses


def remove_excess(surplus: Sequence[Excess]) -> None:
    """Removes it. Raises UserError for a run that was resumed since, OSError."""
    for each in surplus:
        if each.checkpoint is None:
            delete(each.run)
        else:
            shutil.rmtree(each.checkpoint)


def _checkpoints(run: RunDir) -> list[Path]:
    return [checkpoint(run, step)[1] for step in checkpoint_steps(run)]


def _may_go(run: RunDir, state: RunState) -> bool:
    return not (state.going or state.damaged or state.later or str(read_note(run.note)))
