"""How the second campaign goes: side by side as long as there is memory, the cluster beside them, then the queue."""

import json
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from concurrent import futures
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import psutil
from campaign import (
    CARDS,
    JOINED,
    LATEST,
    MEMORY,
    MORE,
    QUEUE,
    REHEARSED,
    REHEARSED_CLUSTER,
    REHEARSED_QUEUE,
    SIDE_BY_SIDE,
    SUBMITTED,
    TOGETHER_BY,
)
from cluster import on_a_cluster
from conduct import KIT, RESULTS, Experiment, conduct, left, mark, queued
from host import Lane, ppo_tui, told

GB = 10**9
YOUNG = 200.0  # seconds in which a run comes to use its memory
SPARE = 16  # GB of the host that nobody takes
SECOND_CHANCE = 270.0  # seconds that are left for one
QUEUE_LEAST = 200.0  # seconds without which another run is not begun
_begun: list[tuple[float, int]] = []
_admission = threading.Lock()


def conduct_all(gpus: int, names: Sequence[str]) -> None:
    """The campaign, or the experiments of these names (`cluster` is one), on so many GPUs, until the time is up."""
    everything = tuple(range(min(gpus, 2)))
    cards = chosen(CARDS, names) if gpus > 1 else []
    with ThreadPoolExecutor(len(SIDE_BY_SIDE) + 2) as pool:
        going: list[futures.Future[object]] = (
            [pool.submit(_cluster, everything)] if not names or "cluster" in names else []
        )
        if names and cards:  # without names the queue needs it
            gpus -= 1
            going.append(pool.submit(one_after_another, cards, Lane((gpus,))))
        together = list(going)
        late = side_by_side(chosen(SIDE_BY_SIDE, names), gpus, LATEST, pool, going)
        # a trial of a fix may go on, as long as it has its GPU
        futures.wait([each for each in going if each not in together], max(0.0, left(TOGETHER_BY + 20)))
        mark(f"side by side: done, without {[each.name for each in late]}")
        the_queue(chosen(QUEUE if cards and names else (*QUEUE, *CARDS), names))
        if left() > QUEUE_LEAST and late:
            side_by_side(late, gpus, float("inf"), pool, going)


def rehearse(names: Sequence[str]) -> None:
    """The same on the CPU, where one run at a time is enough."""
    for experiment in chosen(REHEARSED, names):
        conduct(experiment, Lane())
    if not names or "queue" in names:
        the_queue(REHEARSED_QUEUE)
    if not names or "cluster" in names:
        on_a_cluster(REHEARSED_CLUSTER[:1], REHEARSED_CLUSTER[1], (), 16)


def chosen(experiments: Sequence[Experiment], names: Sequence[str]) -> list[Experiment]:
    """The experiments of these names, all without any."""
    return [each for each in experiments if not names or each.name in names]


def one_after_another(experiments: Sequence[Experiment], lane: Lane) -> None:
    """Each has the lane to itself, once models.py has made what it needs."""
    while not (KIT / "one-question.parquet").exists() and left() > 0:  # which it makes last
        time.sleep(1)
    for experiment in experiments:
        if left() > QUEUE_LEAST:
            conduct(experiment, lane)


def side_by_side(
    experiments: Sequence[Experiment],
    gpus: int,
    latest: float,
    pool: futures.Executor,
    going: list[futures.Future[object]],
) -> list[Experiment]:
    """Begins experiments as soon as the host has memory; returns those that could not begin in time."""
    late: list[Experiment] = []
    for experiment in experiments:
        wanted = tuple(gpu for gpu in experiment.gpus if gpu < gpus)
        if len(experiment.gpus) > max(1, len(wanted)):
            continue  # there are too few
        if admitted(MEMORY + MORE * (len(experiment.gpus) - 1), lambda: left(latest) > 0):
            going.append(pool.submit(_with_a_second_chance, experiment, Lane(wanted or (0,))))
            time.sleep(1.5)  # twenty Ray heads at once would wait for each other
        else:
            late.append(experiment)
    return late


def _with_a_second_chance(experiment: Experiment, lane: Lane) -> None:
    """What did not come to its first step begins again, if there is time for a start and some steps."""
    if not conduct(experiment, lane) and left(experiment.by) > SECOND_CHANCE:
        conduct(replace(experiment, name=f"{experiment.name}-again"), lane)


def admitted(need: int, waits: Callable[[], bool]) -> bool:
    """Whether the host came to have room for so many GB; those that began just now have not taken theirs yet."""
    while True:
        with _admission:
            young = sum(size for at, size in _begun if time.monotonic() - at < YOUNG)
            if psutil.virtual_memory().available > (need + young + SPARE) * GB:
                _begun.append((time.monotonic(), need))
                return True
        if not waits():
            return False
        time.sleep(2)


def _cluster(gpus: tuple[int, ...]) -> None:
    """From the beginning, as it takes two starts, one after the other, and the queue needs the GPUs."""
    if len(gpus) > 1 and admitted(2 * MEMORY, lambda: left(LATEST) > 0):
        on_a_cluster(JOINED, SUBMITTED, gpus, 64)
    else:
        mark("cluster: no room")


def the_queue(experiments: Sequence[Experiment]) -> None:
    """All of them through the queue, at once; queue.jsonl is what it looked like meanwhile."""
    cleaned = ppo_tui(Lane(), "clean", "--yes", "--json")
    (RESULTS / "clean.txt").write_text(cleaned.stdout + cleaned.stderr)  # what the runs before have left
    asked = [(each, queued(each)) for each in experiments]
    if not asked:
        return
    over = threading.Event()
    watcher = threading.Thread(target=_watch, args=(over,))
    watcher.start()
    try:
        with ThreadPoolExecutor(len(asked)) as pool:
            list(pool.map(lambda each: conduct(each[0], Lane(), each[1]), asked))
    finally:
        over.set()
        watcher.join()


def _watch(over: threading.Event) -> None:
    """What every GPU has in use, every two seconds, and the queue, now and then: whoever looks keeps it going."""
    looked = 0.0
    with (RESULTS / "queue.jsonl").open("w", buffering=1) as file:
        while not over.wait(2):
            line: dict[str, object] = {"t": time.time(), "used": _used()}
            if time.time() - looked > 30:
                line["queue"], looked = told(Lane(), "queue"), time.time()
            file.write(json.dumps(line) + "\n")


def _used() -> list[int]:
    asked = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return []
    return [int(line) for line in done.stdout.split()]
