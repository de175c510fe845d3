"""Removes runs with all their files, leftovers of ended runs, and runs over the user's limits."""

import contextlib
import shutil
import time
from collections.abc import Container, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil

from launcher.core.errors import UserError, of_file
from launcher.core.files import discard, size
from launcher.record.control import alone
from launcher.record.layout import RunDir, all_runs
from launcher.record.note import read_note
from launcher.record.process import ProcessId, processes_of_runs
from launcher.record.ray_session import RaySession, left_by
from launcher.record.shared import Inode, SharedFile, in_use, shared_by
from launcher.record.state import RunState, current
from launcher.runs.supervise.spawn import ended
from launcher.runs.watch.checkpoints import checkpoints
from launcher.runs.watch.possible import Verb, require
from launcher.settings import Keep

_PATIENCE = 3.0  # seconds in which killed processes must be gone


def check(run: RunDir) -> str:
    """Evidence that a run of another container has ended, or "". Raises UserError for a run that has not ended."""
    seen = current(run, checks=False).elsewhere
    require(run, Verb.DELETE, ended(run), run.read_head())
    return f"run {run.id}, of another container or machine, has ended: {seen.words}" if seen is not None else ""


def delete(run: RunDir) -> None:
    """Removes an ended run and leftovers of its processes. Raises UserError for a run that has not ended.

    The run leaves the list at once; removing hundreds of gigabytes of checkpoints takes longer. If killed, the next
    delete completes the removal.
    """
    with alone(run):
        check(run)
        _delete(run)


def _delete(run: RunDir) -> None:
    sessions, shared = left_by(run), shared_by(run)
    try:
        discard(run.path)
    except OSError as error:
        raise of_file(f"cannot delete run {run.id}", error) from None
    for session in sessions:
        shutil.rmtree(session.path, ignore_errors=True)
    for file in shared:
        file.remove()


@dataclass(frozen=True)
class Removable:
    """A part of an ended run that `clean` may remove; `bytes`: the space that this frees.

    `what`: a leftover process, Ray folder or shared file, a checkpoint, or the run itself.
    """

    kind: Literal["process", "folder", "memory", "socket", "checkpoint", "run"]
    run: RunDir
    name: str
    bytes: int
    what: ProcessId | RaySession | SharedFile | Path


def leftovers() -> list[Removable]:
    """Removable leftovers: only of runs in this user's list, found by environment and records."""
    over = {run.id: run for run in all_runs() if current(run, checks=False).over}
    left = []
    for pid, run_id in processes_of_runs():
        with contextlib.suppress(psutil.Error):
            if run_id in over and (process := ProcessId.of(pid)):
                known = psutil.Process(pid)
                name, memory = f"{pid} {known.name()}", known.memory_info().rss
                left.append(Removable("process", over[run_id], name, memory, process))
    for run in over.values():
        left += [Removable("folder", run, each.path, size(Path(each.path)), each) for each in left_by(run)]
        left += [Removable(each.kind, run, each.path, each.bytes, each) for each in shared_by(run)]
    return left


def excess(keep: Keep) -> list[Removable]:
    """Runs and checkpoints over the limits, in the order of removal.

    Excludes runs that have not ended, have a note, are damaged or come from a later ppo-tui, and the newest checkpoint
    of a remaining run, which a resume needs.
    """
    runs = all_runs()
    states = {run.id: current(run, checks=False) for run in runs}
    over = runs[keep.runs :] if keep.runs is not None else []
    gone = [run for run in reversed(over) if _may_go(run, states[run.id])]
    excesses = [Removable("run", run, str(run.path), size(run.path), run.path) for run in gone]
    if keep.checkpoints is None:
        return excesses
    left = [run for run in reversed(runs) if run not in gone]
    saved = [(run, path, size(path)) for run in left for path in _checkpoints(run)]
    surplus = sum(count for *_, count in saved) - keep.checkpoints
    for run, path, count in saved:
        if surplus <= 0:
            break
        if _may_go(run, states[run.id]) and path != _checkpoints(run)[-1]:
            excesses.append(Removable("checkpoint", run, str(path), count, path))
            surplus -= count
    return excesses


def remove(items: Sequence[Removable]) -> dict[Removable, str]:
    """Removes items that are still removable under their run's lock. Returns the reasons for the items that stay."""
    stay, used = {}, in_use() if any(isinstance(each.what, SharedFile) for each in items) else set()
    for each in items:
        try:
            with alone(each.run):
                _remove(each, used)
        except UserError as error:
            stay[each] = str(error)
        except OSError as error:
            stay[each] = error.strerror or str(error)
    killed = [each for each in items if isinstance(each.what, ProcessId) and each not in stay]
    deadline = time.monotonic() + _PATIENCE
    while (left := [each for each in killed if _lives(each)]) and time.monotonic() < deadline:
        time.sleep(0.05)
    return stay | dict.fromkeys(left, "it could not be killed")


def _remove(item: Removable, used: Container[Inode]) -> None:
    """Removes an item of a locked run. Raises UserError if it is no longer removable, OSError."""
    run, what, state = item.run, item.what, current(item.run, checks=False)
    if not (_may_go(run, state) if isinstance(what, Path) else state.over):
        raise UserError(f"run {run.id} was changed since")
    if isinstance(what, ProcessId):
        if what.alive():
            with contextlib.suppress(psutil.Error):
                psutil.Process(what.pid).kill()
    elif isinstance(what, RaySession):
        if what.left:
            shutil.rmtree(what.path)
    elif isinstance(what, SharedFile):
        if what.key in used:
            raise UserError("a process uses it")
        what.remove()
    elif item.kind == "run":
        _delete(run)
    elif what in _checkpoints(run)[:-1]:
        discard(what)
    else:
        raise UserError(f"it is the newest checkpoint of run {run.id}, or gone")


def _lives(item: Removable) -> bool:
    return isinstance(item.what, ProcessId) and item.what.alive()


def _checkpoints(run: RunDir) -> list[Path]:
    return list(checkpoints(run).values())


def _may_go(run: RunDir, state: RunState) -> bool:
    return not (state.going or state.damaged or state.later or str(read_note(run.note)))
