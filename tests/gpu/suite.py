"""The experiments on this host's GPUs, side by side.

    suite.py               all of them, on as many GPUs as there are
    suite.py NAME ...      these only
    suite.py second [NAME ...]  those of campaign.py: side by side, a cluster, and a queue
    suite.py rehearse      the same flow with toy-cpu
    suite.py rehearse second

Started by run.sh, which sets KIT, PPO_TUI and the rest.
"""

import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import second
from conduct import CAPTURES, KIT, RESULTS, Experiment, conduct, fixed_work, mark
from experiments import ALONE, FIXED, QUEUES, REHEARSAL, SPARE, TOGETHER, Queue
from host import PPO_TUI, Lane, told


def main(words: Sequence[str]) -> None:
    CAPTURES.mkdir(parents=True, exist_ok=True)
    # a shell ignores it for its background processes, and their children inherit that
    signal.signal(signal.SIGINT, signal.default_int_handler)
    rehearse = "rehearse" in words
    if rehearse:
        os.environ.setdefault("PPO_TUI_HOME", str(KIT / "home"))
        os.environ.setdefault("WATCHED_STEPS", "40")
    host = describe()
    lanes = [Lane((gpu,)) for gpu in range(0 if rehearse else len(host["gpus"]))] or [Lane()]
    mark(f"suite: {len(lanes)} lanes")
    if "fixed-spans" in words:  # beside the uploads
        fixed_work("spans", lanes[0])
        return
    (RESULTS / "host.json").write_text(json.dumps(host, indent=1))
    if "second" in words:  # home.sh brings home what there is
        second.rehearse(words[2:]) if rehearse else second.conduct_all(len(lanes), words[1:])
        mark("suite: done")
        return
    (RESULTS / "doctor.json").write_text(json.dumps(told(Lane(), "doctor"), indent=1))
    for kind in FIXED:  # first: with nothing beside it
        if rehearse or not words or f"fixed-{kind}" in words:
            fixed_work(kind, lanes[0])
    if rehearse:
        side_by_side([REHEARSAL], lanes)
    else:
        side_by_side([chosen(queue, words) for queue in QUEUES], lanes)
        if len(lanes) > 1:
            through(chosen([TOGETHER], words), Lane((0, 1)))
        through(chosen([ALONE], words), lanes[0])
        side_by_side([chosen(queue, words) for queue in SPARE], lanes)
    keep()
    mark("suite: done")


def chosen(queue: Queue, names: Sequence[str]) -> Queue:
    """The experiments of these names, all without any."""
    stages = [[each for each in stage if not names or each.name in names] for stage in queue]
    return [stage for stage in stages if stage]


def side_by_side(queues: Sequence[Queue], lanes: Sequence[Lane]) -> None:
    """Conducts the queues, dealt out to the lanes."""
    work: list[list[Sequence[Experiment]]] = [[] for _ in lanes]
    for index, queue in enumerate(queues):
        work[index % len(lanes)] += queue
    with ThreadPoolExecutor(len(lanes)) as pool:
        list(pool.map(through, work, lanes))


def through(queue: Queue, lane: Lane) -> None:
    """Conducts a queue; what did not come to its first step has a second chance, alone, at the end."""
    again = []
    for stage in queue:
        with ThreadPoolExecutor(len(stage)) as pool:
            went = list(pool.map(lambda experiment: conduct(experiment, lane), stage))
        again += [experiment for experiment, well in zip(stage, went, strict=True) if not well]
    for experiment in again:
        conduct(replace(experiment, name=f"{experiment.name}-again"), lane)


def keep() -> None:
    """The run directories without checkpoints and samples (they hold GSM8K's text), in one file."""

    def wanted(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        left_out = {"checkpoints", "samples"} & set(Path(entry.name).parts) or entry.size > 8_000_000
        return None if left_out else entry

    with tarfile.open(RESULTS / "runs.tgz", "w:gz") as archive:
        archive.add(Path(os.environ["PPO_TUI_HOME"]) / "runs", "runs", filter=wanted)


def describe() -> dict[str, Any]:
    """GPUs, CPUs, and the version of the product."""
    asked = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    try:
        gpus = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.splitlines()
    except FileNotFoundError:
        gpus = []
    version = subprocess.run([PPO_TUI, "--version"], capture_output=True, text=True, check=False)
    return {"gpus": gpus, "cpus": os.cpu_count(), "ppo-tui": version.stdout.strip(), "date": time.strftime("%F")}


if __name__ == "__main__":
    main(sys.argv[1:])
