"""Drivers that hang: `python stalls_faults.py NAME FOLDER`, started by test_stalls_live.py.

They print steps like veRL. The evidence must show `hang_*` as own code.
"""

import fcntl
import os
import queue
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ppo_tui_inside import stacks

stacks.install()
FOLDER = Path(sys.argv[2]) if len(sys.argv) > 2 else Path()
FOREVER = 3600
HOLD = f"print(1, flush=True); time.sleep({FOREVER})"


def steps(count: int = 5, every: float = 0.5) -> None:
    """Short steps, so that the hang after them is detected after 20 s."""
    print("Total training steps: 100", flush=True)
    for step in range(1, count + 1):
        time.sleep(every)
        print(f"step:{step} - critic/score/mean:0.{step} - actor/entropy:0.5 - actor/pg_loss:0.1", flush=True)


def hang_queue() -> None:
    import multiprocessing

    full: Any = multiprocessing.get_context("spawn").Queue(1)
    steps()
    full.put(1)
    full.put(2)


def two_ranks(name: str, end: Callable[[int, Any, Any], object]) -> None:
    """Two processes of a collective; the first prints the steps, then both call `end`."""
    if len(sys.argv) < 5:
        port = str(29500 + os.getpid() % 1000)
        argv = [sys.executable, sys.argv[0], name, str(FOLDER)]
        ranks = [subprocess.Popen([*argv, str(rank), port]) for rank in range(2)]
        for each in ranks:
            each.wait()
        return
    import torch
    import torch.distributed as dist

    rank, grads = int(sys.argv[3]), torch.ones(4)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=sys.argv[4], RANK=str(rank), WORLD_SIZE="2")
    dist.init_process_group("gloo")
    for _ in range(5):
        dist.all_reduce(grads)
    if rank == 0:
        steps()
    dist.barrier()
    end(rank, dist, grads)


def score_slowly() -> None:
    time.sleep(FOREVER)


def hang_missing() -> None:
    def end(rank: int, dist: Any, grads: Any) -> None:
        if rank == 1:
            score_slowly()
        dist.all_reduce(grads)

    two_ranks("missing", end)


def asking(dist: Any, grads: Any) -> None:
    """Joins a collective and constantly polls for the others, as NCCL does."""
    work = dist.all_reduce(grads, async_op=True)
    while not work.is_completed():
        pass


def hang_spinning() -> None:
    """As `hang_missing`, but the other rank constantly polls."""

    def end(rank: int, dist: Any, grads: Any) -> None:
        if rank == 1:
            score_slowly()
        asking(dist, grads)

    two_ranks("spinning", end)


def hang_killed_rank() -> None:
    """Stops one of two ranks by SIGSTOP."""

    def end(rank: int, dist: Any, grads: Any) -> None:
        if rank == 1:
            os.kill(os.getpid(), signal.SIGSTOP)
        dist.all_reduce(grads)

    two_ranks("killed_rank", end)


def hold(code: str) -> None:
    """Runs code that takes and keeps a lock in a process; returns when it is taken."""
    holder = subprocess.Popen([sys.executable, "-c", f"{code}; {HOLD}"], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    holder.stdout.readline()


def hang_lock() -> None:
    import filelock

    path = FOLDER / "model.lock"
    hold(f"import filelock, time; lock = filelock.FileLock({str(path)!r}); lock.acquire()")
    steps()
    filelock.FileLock(path).acquire()


def hang_flock() -> None:
    path = FOLDER / "data.lock"
    hold(f"import fcntl, time; file = open({str(path)!r}, 'w'); fcntl.flock(file, fcntl.LOCK_EX)")
    steps()
    with path.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)


def hang_data_loader() -> None:
    from torch.utils.data import DataLoader

    loader = DataLoader(Rows(), batch_size=1, num_workers=1)
    print("Total training steps: 100", flush=True)
    for step, _ in enumerate(loader, 1):
        print(f"step:{step} - critic/score/mean:0.5 - actor/entropy:0.5", flush=True)


class Rows:
    """A data set whose eighth row never comes."""

    def __len__(self) -> int:
        return 100

    def __getitem__(self, index: int) -> int:
        time.sleep(0.5)
        if index == 7:
            self.read_from_server()
        return index

    def read_from_server(self) -> None:
        queue.Queue[int]().get()


if __name__ == "__main__":
    globals()[f"hang_{sys.argv[1]}"]()
