"""Drivers that hang: `python stalls_faults.py NAME FOLDER`, started by stalls.py.

They print steps as veRL does. `hang_*` are what the evidence must show as own code.
"""

import asyncio
import contextlib
import fcntl
import http.server
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ppo_tui_inside import stacks

stacks.install()
FOLDER = Path(sys.argv[2]) if len(sys.argv) > 2 else Path()
FOREVER = 3600
HOLD = f"print(1, flush=True); time.sleep({FOREVER})"


def steps(count: int = 5, every: float = 0.5, after: int = 0) -> None:
    """Steps whose usual time is short, so that the hang after them is noticed after 20 s."""
    print("Total training steps: 100", flush=True)
    for step in range(after + 1, after + count + 1):
        time.sleep(every)
        print(f"step:{step} - critic/score/mean:0.{step} - actor/entropy:0.5 - actor/pg_loss:0.1", flush=True)


def start_ray(**more: Any) -> Any:
    import ray

    env = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    ray.init(num_cpus=4, include_dashboard=False, address="local", runtime_env={"env_vars": env}, **more)
    return ray


def hang_placement() -> None:
    ray = start_ray()
    from ray.util.placement_group import placement_group

    ray.get(placement_group([{"GPU": 2, "CPU": 1}]).ready())


def hang_cpus() -> None:
    ray = start_ray()

    class Worker:
        def ready(self) -> None:
            pass

    kind = ray.remote(num_cpus=1)(Worker)
    ray.get([kind.remote().ready.remote() for _ in range(2)])
    many = [kind.options(num_cpus=3).remote() for _ in range(3)]
    ray.get([worker.ready.remote() for worker in many])


def hang_dead_actor() -> None:
    ray = start_ray()

    class Storage:
        def __init__(self) -> None:
            self.items: list[int] = []

        def size(self) -> int:
            return len(self.items)

        def end(self) -> None:
            os._exit(7)

    storage = ray.remote(num_cpus=1)(Storage).remote()
    ray.get(storage.size.remote())
    steps()
    storage.end.remote()
    while True:  # as a loop that takes an error for an empty queue
        with contextlib.suppress(ray.exceptions.RayActorError):
            if ray.get(storage.size.remote()):
                break
        time.sleep(1)


def hang_store() -> None:
    import numpy

    spill = FOLDER / "spill"  # too small for what does not fit the store
    spill.mkdir(exist_ok=True)
    ray = start_ray(object_store_memory=80 << 20, object_spilling_directory=str(spill))
    steps()
    held: list[Any] = []
    while len(held) < 12:  # as a writer that tries again
        try:
            held.append(ray.put(numpy.zeros(20 << 20, numpy.uint8)))
        except (ray.exceptions.ObjectStoreFullError, ray.exceptions.OutOfDiskError):
            time.sleep(5)


def hang_queue() -> None:
    import multiprocessing

    full: Any = multiprocessing.get_context("spawn").Queue(1)
    steps()
    full.put(1)
    full.put(2)


def two_ranks(name: str, end: Callable[[int, Any, Any], object]) -> None:
    """Two processes of a collective, of which the first prints the steps; then `end` of each rank."""
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
    """Joins a collective and asks all the time whether the others have come, as NCCL does."""
    work = dist.all_reduce(grads, async_op=True)
    while not work.is_completed():
        pass


def hang_spinning() -> None:
    """As `hang_missing`, but the other rank asks all the time."""

    def end(rank: int, dist: Any, grads: Any) -> None:
        if rank == 1:
            score_slowly()
        asking(dist, grads)

    two_ranks("spinning", end)


def hang_mismatch() -> None:
    two_ranks("mismatch", lambda rank, dist, grads: dist.recv(grads, src=0) if rank else dist.all_reduce(grads))


def hang_killed_rank() -> None:
    """One of two ranks gets SIGSTOP."""

    def end(rank: int, dist: Any, grads: Any) -> None:
        if rank == 1:
            os.kill(os.getpid(), signal.SIGSTOP)
        dist.all_reduce(grads)

    two_ranks("killed_rank", end)


def hold(code: str) -> None:
    """Runs code that takes a lock in a process that keeps it; returns when it is taken."""
    holder = subprocess.Popen([sys.executable, "-c", f"{code}; {HOLD}"], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    holder.stdout.readline()


def hang_lock() -> None:
    import filelock

    path = FOLDER / "model.lock"
    hold(f"import filelock, time; lock = filelock.FileLock({str(path)!r}); lock.acquire()")
    steps()
    filelock.FileLock(path).acquire()


def hang_flock(after: int = 0) -> None:
    path = FOLDER / "data.lock"
    hold(f"import fcntl, time; file = open({str(path)!r}, 'w'); fcntl.flock(file, fcntl.LOCK_EX)")
    steps(after=after)
    with path.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)


def hang_twice() -> None:
    """A lock, in a run that had a full queue for a minute: that minute must not count as a usual step."""
    slots: queue.Queue[int] = queue.Queue(1)
    threading.Timer(65.0, slots.get).start()
    steps()
    slots.put(1)
    slots.put(2)
    hang_flock(after=5)


def hang_disk_full() -> None:
    """FOLDER/small is a file system of 4 MiB."""
    steps()
    with (FOLDER / "small/checkpoint.pt").open("wb", buffering=0) as file:
        while True:
            try:
                file.write(b"x" * (1 << 20))
            except OSError:
                time.sleep(1)


def hang_disk_wait() -> None:
    """FOLDER/frozen is a file system that stalls.py freezes once there is FOLDER/ready."""
    steps()
    (FOLDER / "ready").touch()
    time.sleep(3)
    with (FOLDER / "frozen/checkpoint.pt").open("wb", buffering=0) as file:
        file.write(b"x" * (1 << 20))
        os.fsync(file.fileno())


class Stuck(http.server.BaseHTTPRequestHandler):
    """A hub whose file stops after its first bytes."""

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "100000000")
        self.send_header("ETag", '"a0b1"')
        self.send_header("X-Repo-Commit", "0" * 40)
        self.end_headers()

    def do_GET(self) -> None:
        self.do_HEAD()
        self.wfile.write(b"x" * 1000)
        self.wfile.flush()
        time.sleep(FOREVER)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def hang_download() -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Stuck)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.environ |= {
        "HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}",
        "HF_HOME": str(FOLDER / "hf"),
        "HF_HUB_DOWNLOAD_TIMEOUT": str(FOREVER),
        "HF_HUB_DISABLE_XET": "1",
    }
    os.environ.pop("HF_HUB_OFFLINE", None)
    from huggingface_hub import hf_hub_download

    hf_hub_download("acme/model", "model.safetensors")


def hang_data_loader() -> None:
    from torch.utils.data import DataLoader

    loader = DataLoader(Rows(), batch_size=1, num_workers=1)
    print("Total training steps: 100", flush=True)
    for step, _ in enumerate(loader, 1):
        print(f"step:{step} - critic/score/mean:0.5 - actor/entropy:0.5", flush=True)


class Rows:
    """A data set whose eighth row does not come."""

    def __len__(self) -> int:
        return 100

    def __getitem__(self, index: int) -> int:
        time.sleep(0.5)
        if index == 7:
            self.read_from_server()
        return index

    def read_from_server(self) -> None:
        queue.Queue[int]().get()


def hang_fifo() -> None:
    """Steps with spans, as veRL's trainer has them; then a worker opens a FIFO that nobody writes."""
    from ppo_tui_inside.plugin.spans import Span
    from torch.utils.data import DataLoader

    os.mkfifo(FOLDER / "rows")
    batches = iter(DataLoader(FifoRows(), batch_size=1, num_workers=1))
    for step in range(100):
        with Span("data", "trainer"):
            next(batches)
        with Span("gen", "trainer"):
            steps(1, every=4.0, after=step)


class FifoRows(Rows):
    """The same from a FIFO."""

    def read_from_server(self) -> None:
        (FOLDER / "rows").read_text()


def score(**_: Any) -> float:
    time.sleep(FOREVER)
    return 0.0


async def score_async(**_: Any) -> float:
    await wait_for_judge()
    return 0.0


async def wait_for_judge() -> None:
    await asyncio.sleep(FOREVER)


class Decoder:
    def decode(self, ids: Any, **_: Any) -> str:
        return str(ids)


class Scorer:
    """An actor with veRL's own reward manager, as its RewardLoopWorker."""

    def ready(self) -> None:
        stacks.install()

    async def compute_score(self, which: str) -> Any:
        import torch
        from verl import DataProto
        from verl.experimental.reward_loop.reward_manager.naive import NaiveRewardManager

        own = {"score": score, "score_async": score_async}[which]
        row = {"responses": torch.ones(1, 4), "attention_mask": torch.ones(1, 4, dtype=torch.long)}
        known = {"data_source": ["toy"], "reward_model": [{"ground_truth": "1"}]}
        data = DataProto.from_dict(row, {name: numpy_of(value) for name, value in known.items()})
        return await NaiveRewardManager(None, Decoder(), own).run_single(data)


def numpy_of(values: Any) -> Any:
    import numpy

    return numpy.array(values, dtype=object)


def hang_reward(which: str = "score") -> None:
    ray = start_ray()
    scorer = ray.remote(num_cpus=1)(Scorer).remote()
    ray.get(scorer.ready.remote())
    steps()
    ray.get(scorer.compute_score.remote(which))


def hang_async_reward() -> None:
    hang_reward("score_async")


# Healthy waits. Each ends by itself, longer than twice the usual time of a step.


if __name__ == "__main__":
    globals()[f"hang_{sys.argv[1]}"]()
