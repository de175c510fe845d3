"""Two processes that change one queue at the same time; `PYTHONPATH=. python tests/support/queue_writers.py 500`.

In each round both write their own field into one shared entry, move it, and check that their previous value is still
there; one removes an entry and the other adds one; both try to get another entry, one to start it, one to remove it.
"""

import contextlib
import multiprocessing
import os
import sys
import tempfile
import time
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier
from typing import Any

from launcher.core import paths
from launcher.core.errors import UserError
from launcher.record import queued
from launcher.record.process import ProcessId
from launcher.record.queued import Checked, Queued

SHARED, PATIENCE = "shared", 600.0
FIELDS = {"starts": "note", "removes": "given"}


def entry(id: str) -> Queued:
    return queued.append(Queued(id, id, {}, "host", 0, 0.0, time.time()))


def race(rounds: int) -> list[str]:
    """The losses and reappearances in `rounds` rounds in PPO_TUI_HOME; empty without any."""
    entry(SHARED)
    for n in range(rounds):
        entry(f"prize-{n}")
        Checked(ended=1.0).save(entry(f"victim-{n}").id)
    context = multiprocessing.get_context("spawn")
    together, told = context.Barrier(2), {role: context.SimpleQueue() for role in FIELDS}
    writers = [context.Process(target=write, args=(role, rounds, together, told[role])) for role in FIELDS]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    if any(writer.exitcode for writer in writers):
        return [f"the writers ended with {[writer.exitcode for writer in writers]}"]
    (started, lost), (removed, back) = (told[role].get() for role in FIELDS)
    found = [*lost, *back, *(f"{id} was started and removed" for id in started & removed)]
    found += [f"prize-{n} was given to nobody" for n in range(rounds) if f"prize-{n}" not in started | removed]
    wanted = {SHARED, *started, *(f"new-{n}" for n in range(rounds))}
    left = {each.id for each in queued.entries()}
    found += [f"{id} came back" for id in sorted(left - wanted)] + [f"{id} is lost" for id in sorted(wanted - left)]
    checks = {path.stem for path in paths.queue_dir().glob("checks/*.json")}
    return found + [f"the check of {id} came back" for id in sorted(checks)]


def write(role: str, rounds: int, together: Barrier, told: "SimpleQueue[tuple[set[str], list[str]]]") -> None:
    """One of the two writers; reports its entries and losses."""
    field, starts, us = FIELDS[role], role == "starts", ProcessId.of(os.getppid())
    written = getattr(shared := queued.find(SHARED), field)
    got, wrong = set(), []
    for n in range(rounds):
        prize, victim = queued.find(f"prize-{n}"), queued.find(f"victim-{n}")
        together.wait(PATIENCE)
        if starts:
            entry(f"new-{n}")
        else:
            victim.remove()
        if getattr(queued.find(SHARED), field) != written:
            wrong.append(f"{field} of round {n - 1} is lost")
        written = str(n) if starts else (str(n),)
        change: dict[str, Any] = {field: written}
        queued.change(shared, **change)
        queued.move(shared, -3 if starts else 5)
        if starts and queued.decide(prize, starter=us):
            got.add(prize.id)
        with contextlib.suppress(UserError):  # it is being started
            if not starts:
                prize.remove()
                got.add(prize.id)
        wrong += [f"victim-{gone} came back" for gone in range(n) if queued.get(f"victim-{gone}") is not None]
        together.wait(PATIENCE)
    told.put((got, wrong))


if __name__ == "__main__":
    os.environ["PPO_TUI_HOME"] = tempfile.mkdtemp()
    begun = time.monotonic()
    print("\n".join(race(int(sys.argv[1]))) or "nothing was lost, nothing came back")
    print(f"{sys.argv[1]} rounds in {time.monotonic() - begun:.0f} s")
