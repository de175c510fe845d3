"""What runs that have ended left on this machine: processes, and folders of their Ray."""

import contextlib
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from launcher.record.layout import all_runs
from launcher.record.process import ProcessId, processes_of_runs
from launcher.record.ray_session import RaySession, left_by
from launcher.record.state import RunState, current
from launcher.runs.act.delete import size

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
    """What may be removed: of runs in the list of this user alone, found by their environment and their records."""
    over = {run.id: run for run in all_runs() if _over(current(run, checks=False))}
    found = []
    for pid, run_id in processes_of_runs():
        with contextlib.suppress(psutil.Error):
            if run_id in over and (process := ProcessId.of(pid)):
                known = psutil.Process(pid)
                found.append(Leftover(run_id, f"{pid} {known.name()}", known.memory_info().rss, process))
    for run in over.values():
        found += [Leftover(run.id, each.path, size(Path(each.path)), session=each) for each in left_by(run)]
    return found


def remove(found: list[Leftover]) -> list[Leftover]:
    """Kills the processes and deletes the folders; returns what is left of them."""
    for each in found:
        if each.process is not None and each.process.alive():
            with contextlib.suppress(psutil.Error):
                psutil.Process(each.process.pid).kill()
        if each.session is not None and each.session.left:
            shutil.rmtree(each.session.path, ignore_errors=True)
    deadline = time.monotonic() + _PATIENCE
    while (left := [each for each in found if _left(each)]) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


def _left(found: Leftover) -> bool:
    return found.process.alive() if found.process is not None else bool(found.session and found.session.left)


def _over(state: RunState) -> bool:
    """Whether the end of a run is on record: one that may still go has left nothing."""
    return not state.live and state.driver_alive is None
