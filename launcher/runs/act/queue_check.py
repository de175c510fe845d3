"""Preflights of queued runs: `python -m launcher.runs.act.queue_check ID` makes one, `Checkers` starts several.

Each is a separate process that writes its result next to the entry. If a process is killed, the entry stays and is
checked again.
"""

import os
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from launcher.core import paths
from launcher.core.errors import UserError
from launcher.core.format import counted
from launcher.machine import capacity
from launcher.machine.host import host_memory
from launcher.preset.files import restore
from launcher.record import queued
from launcher.record.process import ProcessId
from launcher.record.queued import Checked, Queued
from launcher.runs.act.start import Plan
from launcher.runs.supervise.spawn import detached, wake_queue
from launcher.runs.watch.turns import Turn

TRIES = 3  # processes that may end without a result
_CPUS, _MEMORY = 2, 3 << 30  # per check: it imports torch
_MOST = 8


@dataclass
class Checkers:
    """Checks several entries at once."""

    processes: "dict[str, subprocess.Popen[bytes]]" = field(default_factory=dict)

    def look(self, turns: Sequence[Turn]) -> bool:
        """Starts checks of unchecked entries in order; returns whether a check is running.

        An entry whose checks end without a result is refused with the reason.
        """
        self.processes = {id: process for id, process in self.processes.items() if process.poll() is None}
        running = {*self.processes, *(turn.entry.id for turn in turns if turn.check.running)}
        for turn in turns:
            id, before = turn.entry.id, turn.check
            if id in running:
                continue
            if before.tries >= TRIES:
                reason = f"its preflight ended {counted(before.tries, 'time')} without a result; see {queue_log()}"
                replace(before, ended=time.time(), refused=reason).save(id)
            elif len(running) < room():
                Checked(tries=before.tries + 1).save(id)
                self.processes[id] = detached(["launcher.runs.act.queue_check", id], queue_log(), paths.queue_dir())
                running.add(id)
        return bool(turns)


def room() -> int:
    """The maximum number of parallel checks on this machine."""
    used, total = host_memory()
    return max(2, min(_MOST, capacity.cpus() // _CPUS, (total - used) // _MEMORY))


def queue_log() -> Path:
    """The log of the queue processes."""
    return paths.queue_dir() / "queue.log"


def check(entry: Queued) -> Checked:
    """Makes an entry's preflight before its start. Raises UserError or OSError for a run that would fail."""
    return Plan(restore(entry.of_preset, entry.preset)).admit_ahead(narrate, force=entry.force)


def reason_of(error: Exception) -> str:
    """The reason why a run is not started, in words."""
    return str(error) if isinstance(error, UserError | OSError) else repr(error)


def narrate(text: str) -> None:
    """Prints a line into the queue log."""
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    """Checks the entry named on the command line."""
    id = sys.argv[1]
    entry, before = queued.get(id), queued.checked(id)
    if entry is None:
        return
    replace(before, checker=ProcessId.of(os.getpid())).save(id)
    try:
        found = check(entry)
    except Exception as error:
        if not isinstance(error, UserError | OSError):
            traceback.print_exc()
        found = Checked(refused=reason_of(error))
    replace(found, tries=before.tries, ended=time.time()).save(id)
    wake_queue()  # if the process that started this one was killed


if __name__ == "__main__":
    main()
