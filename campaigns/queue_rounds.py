"""Two queue runners, of which one is killed: `PYTHONPATH=. python campaigns/queue_rounds.py ROUNDS [FIRST]`.

Three runs share the CPU, or two GPUs; each has its slots from its creation to the end of `sleep`, which replaces veRL.
In every second round both runners work at the same time, without the lock that admits one of them. The rest is real.
"""

import contextlib
import importlib
import math
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import combinations
from pathlib import Path
from random import Random
from select import select
from types import SimpleNamespace

from launcher.preset.translate import Launch
from launcher.record import queued
from launcher.record.info import Preflight, RunInfo
from launcher.record.layout import RunDir, all_runs, appearing, new_id
from launcher.record.process import ProcessId
from launcher.record.queued import Checked, Queued
from launcher.record.state import current
from launcher.runs.act import queue_check, queue_runner
from launcher.runs.supervise import spawn, supervisor
from launcher.runs.watch import turns

WANTED = os.pipe()  # runs that need a supervisor


def run_queue(home: Path, together: bool, random: Random) -> None:
    """A queue runner with stand-ins for veRL: the preflight and the driver."""

    def start(plan, narrate, *, id, preflight):  # type: ignore[no-untyped-def]
        env = plan.loaded.preset.env
        with appearing(plan.loaded.name, id) as (run, hidden):
            # the end of a run looks for its processes by this id; other rounds may run at the same time
            RunInfo(new_id(id), plan.loaded.name, time.time()).write(hidden.run_yaml)
            gpus = env["CUDA_VISIBLE_DEVICES"].split(",") if env else []
            keys = {"trainer.n_gpus_per_node": len(gpus)} if gpus else {"trainer.device": "cpu"}
            launch = Launch(["sleep", "0.3"], env, [], keys)
            spawn.write_launch(hidden, hidden.add_attempt(), launch, created=time.time(), cwd=run.path)
        spawn.spawn_supervisor(run)

    def admit(loaded, ahead, *, force):  # type: ignore[no-untyped-def]
        time.sleep(2 * random.random())  # meanwhile the checks of others end
        return Preflight()

    def check(words, log, cwd):  # type: ignore[no-untyped-def]
        passed = home / f"{words[1]}.passed"
        Checked(ended=1.0).write(passed)
        move = f"sleep {random.random()}; mv {passed} {home}/queue/checks/{words[1]}.json"
        return subprocess.Popen(["sh", "-c", move])

    def supervise(words, log, cwd):  # type: ignore[no-untyped-def]
        os.write(WANTED[1], f"{words[1]}\n".encode())  # the process without threads forks it
        return SimpleNamespace(poll=lambda: None)

    queue_runner.start, queue_check.detached, spawn.detached = start, check, supervise
    queue_runner.admit_waiting = admit
    turns._sampled = lambda devices: dict.fromkeys(devices or ("0", "1"))
    if together:
        queued.alone = lambda: contextlib.nullcontext(True)  # type: ignore[assignment]
    queue_runner.go_on()


def supervise_run(run: str) -> None:
    """The supervisor of a run, whose end wakes no queue: the round does."""
    spawn.wake_queue, supervisor._ME = lambda **_: None, ProcessId.of(os.getpid())  # type: ignore[assignment]
    sys.argv = ["supervise", run]
    importlib.import_module("launcher.runs.supervise.__main__")


def fork(log: Path, act: Callable[[], None]) -> int:
    """Starts a process with this function; returns its pid."""
    if pid := os.fork():
        return pid
    try:
        os.setsid()
        os.dup2(os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND), 2)
        act()
    except Exception:
        traceback.print_exc()
    finally:
        os._exit(0)


def a_round(home: Path, seed: int) -> Counter[str]:
    """The events of a round, with counts."""
    random = Random(seed)
    os.environ["PPO_TUI_HOME"] = str(home)
    on_cpu, together = seed % 4 < 2, seed % 2 == 0
    for n in range(3):
        needs = 0 if on_cpu else random.choice((1, 1, 2))
        queued.append(Queued(f"{n}-x", f"{n}-x", {}, socket.gethostname(), needs, 0.0, time.time()))
    runner = partial(run_queue, home, together, random)
    runners = {fork(home / "runners.log", runner) for _ in range(2)}
    kill_at = time.monotonic() + 3 * random.random()
    while runners or any(entry.waits for entry in queued.entries()) or any(current(run).going for run in all_runs()):
        if runners and time.monotonic() > kill_at:
            os.kill(random.choice([*runners]), signal.SIGKILL)
            kill_at = math.inf
        for line in os.read(WANTED[0], 1 << 16).splitlines() if select([WANTED[0]], [], [], 0.05)[0] else ():
            fork(home / "supervisors.log", partial(supervise_run, line.decode()))
        with contextlib.suppress(ChildProcessError):
            while pid := os.waitpid(-1, os.WNOHANG)[0]:
                runners -= {pid}
        if not runners and any(entry.waits for entry in queued.entries()):  # the next command wakes the queue
            runners = {fork(home / "runners.log", runner)}
    cut = sum(run.attempt(1).read_exit() is None for run in all_runs())  # the kill came before its supervisor
    found = Counter(started=len(all_runs()) - cut, cut=cut, missing=3 - len(all_runs()))
    return found + Counter(twice=sum(clash(*two) for two in combinations(all_runs(), 2)))


def clash(one: RunDir, other: RunDir) -> bool:
    """Whether two runs had a slot at the same time."""
    uses, times = [], []
    for attempt in (one.attempt(1), other.attempt(1)):
        launch, exit = attempt.read_launch(), attempt.read_exit()
        uses.append(set(launch.env.get("CUDA_VISIBLE_DEVICES", "cpu").split(",")))
        times.append((launch.created or 0.0, exit.t if exit else 0.0))
    return bool(uses[0] & uses[1]) and max(begun for begun, _ in times) < min(ended for _, ended in times)


if __name__ == "__main__":
    os.environ.pop("CUDA_VISIBLE_DEVICES", None)
    total: Counter[str] = Counter()
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, first + int(sys.argv[1])):
            (home := Path(folder) / str(seed)).mkdir()
            total += (found := a_round(home, seed))
            if found["missing"] or found["twice"]:
                print(f"round {seed}: {dict(found)}", flush=True)
    print(f"{sys.argv[1]} rounds, {dict(total)}")
    sys.exit(total["missing"] + total["twice"] > 0)
