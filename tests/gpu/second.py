"""How the second campaign goes: side by side as long as there is memory, the cluster beside them, then the queue."""

import json
import os
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import judged
import psutil
import tuned
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
from host import Lane, on_cores, told
from third import LATEST as THIRD_LATEST
from third import MOST, QUEUE_FROM, QUEUED, THIRD
from third import REHEARSED as REHEARSED_THIRD
from third import REHEARSED_QUEUE as REHEARSED_THIRD_QUEUE

GB = 10**9
YOUNG = 200.0  # seconds in which a run comes to use its memory
SPARE = 16  # GB of the host that nobody takes
SECOND_CHANCE = 270.0  # seconds that are left for one
QUEUE_LEAST = 200.0  # seconds without which another run is not begun
_begun: list[tuple[float, int]] = []
_on: Counter[int] = Counter()  # experiments that go on, by GPU
_admission = threading.Lock()


def conduct_all(gpus: int, names: Sequence[str]) -> None:
    """The campaign, or the experiments of these names (`cluster` is one), on so many GPUs, until the time is up."""
    if "third" in names:
        third(gpus, names[1:])
        return
    if "fourth" in names:
        fourth(gpus, names[1:])
        return
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


def third(gpus: int, names: Sequence[str] = ()) -> None:
    """The campaign of third.py: the queue begins when everything on the last GPU is over, beside the first one."""
    with watched_memory(), ThreadPoolExecutor(len(THIRD)) as pool:
        going: list[futures.Future[object]] = []
        begun = chosen(THIRD, names)
        late = side_by_side(begun, gpus, THIRD_LATEST, pool, going)
        mark(f"side by side: all have begun, without {[each.name for each in late]}")
        begun = [each for each in begun if each not in late]
        last = [future for each, future in zip(begun, going, strict=True) if gpus - 1 in each.gpus]
        futures.wait(last, max(0.0, left(QUEUE_FROM + 40)))
        the_queue(chosen(QUEUED, names))


CORES = 12  # for what has the first GPU, beside the judged runs


def fourth(gpus: int, names: Sequence[str]) -> None:
    """`cards` on the first and `whole` on the last GPU, or `hung` on both and `judged` on the second one."""
    every = sorted(os.sched_getaffinity(0))
    works = {
        "cards": (every, tuned.cards),
        "whole": (every, lambda: tuned.whole(gpus - 1)),
        "hung": (every[:CORES], tuned.hung),
        "judged": (every[CORES:], lambda: judged.judged(1)),
    }
    with watched_memory(), ThreadPoolExecutor(len(names)) as pool:
        for each in [pool.submit(on_cores, *works[name]) for name in names]:
            each.result()


@contextmanager
def watched_memory() -> Iterator[None]:
    """memory.csv: MiB in use and utilization of every GPU, four times a second."""
    fields = "timestamp,index,memory.used,utilization.gpu"
    words = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits", "-lms", "250"]
    try:
        with (RESULTS / "memory.csv").open("wb") as file, subprocess.Popen(words, stdout=file) as process:
            try:
                yield
            finally:
                process.terminate()
    except FileNotFoundError:  # no GPU
        yield


def rehearse(names: Sequence[str]) -> None:
    """The same on the CPU, where one run at a time is enough."""
    if "fourth" in names:
        for name, work in (
            ("cards", tuned.rehearse),
            ("judged", lambda: judged.judged(None, judged.REHEARSED, places=2)),
        ):
            if not names[1:] or name in names:
                work()
        return
    if "third" in names:
        for experiment in chosen(REHEARSED_THIRD, names[1:]):
            conduct(experiment, at_home(experiment, Lane()))
        if not names[1:] or "queue" in names:
            the_queue(REHEARSED_THIRD_QUEUE)
        return
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
        if admitted(MEMORY + MORE * (len(experiment.gpus) - 1), wanted, lambda: left(latest) > 0):
            lane = at_home(experiment, Lane(wanted or (0,)))
            going.append(pool.submit(_with_a_second_chance, experiment, lane))
            time.sleep(1.5)  # twenty Ray heads at once would wait for each other
        else:
            late.append(experiment)
    return late


def at_home(experiment: Experiment, lane: Lane) -> Lane:
    """The lane with the home of an experiment that is apart."""
    home = KIT / f"home-{experiment.name}"
    return replace(lane, more=(*lane.more, ("PPO_TUI_HOME", str(home)))) if experiment.apart else lane


def _with_a_second_chance(experiment: Experiment, lane: Lane) -> None:
    """What did not come to its first step begins again, if there is time for a start and some steps."""
    try:
        if not conduct(experiment, lane) and left(experiment.by) > SECOND_CHANCE:
            conduct(replace(experiment, name=f"{experiment.name}-again"), lane)
    finally:
        with _admission:
            _on.subtract(lane.gpus)


def admitted(need: int, gpus: tuple[int, ...], waits: Callable[[], bool]) -> bool:
    """Whether the host came to have room for so many GB, and each GPU for one run more.

    Those that began just now have not taken their memory yet.
    """
    while True:
        with _admission:
            young = sum(size for at, size in _begun if time.monotonic() - at < YOUNG)
            room = all(_on[gpu] < MOST for gpu in gpus)
            if room and psutil.virtual_memory().available > (need + young + SPARE) * GB:
                _begun.append((time.monotonic(), need))
                _on.update(gpus)
                return True
        if not waits():
            return False
        time.sleep(2)


def _cluster(gpus: tuple[int, ...]) -> None:
    """From the beginning, as it takes two starts, one after the other, and the queue needs the GPUs."""
    if len(gpus) > 1 and admitted(2 * MEMORY, (), lambda: left(LATEST) > 0):
        on_a_cluster(JOINED, SUBMITTED, gpus, 64)
    else:
        mark("cluster: no room")


def the_queue(experiments: Sequence[Experiment]) -> None:
    """All of them through the queue, at once; queue.jsonl is what it looked like meanwhile."""
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
    """The queue, now and then: whoever looks keeps it going."""
    with (RESULTS / "queue.jsonl").open("w", buffering=1) as file:
        while not over.wait(15):
            file.write(json.dumps({"t": time.time(), "queue": told(Lane(), "queue")}) + "\n")
