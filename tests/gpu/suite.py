"""The experiments on this host's GPUs, side by side.

    suite.py               all of them, on as many GPUs as there are
    suite.py NAME ...      these only
    suite.py rehearse      the same flow with toy-cpu

Started by run.sh, which sets KIT, PPO_TUI and the rest.
"""

import json
import os
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from conduct import CAPTURES, KIT, RESULTS, Experiment, conduct, mark
from experiments import QUEUES, REHEARSAL, TWO_GPUS
from host import PPO_TUI, Lane, told


def main(words: Sequence[str]) -> None:
    CAPTURES.mkdir(parents=True, exist_ok=True)
    rehearse = list(words) == ["rehearse"]
    if rehearse:
        os.environ.setdefault("PPO_TUI_HOME", str(KIT / "home"))
        os.environ.setdefault("WATCHED_STEPS", "9")
    host = describe()
    lanes = [Lane((gpu,)) for gpu in range(0 if rehearse else len(host["gpus"]))] or [Lane()]
    mark(f"suite: {len(lanes)} lanes")
    (RESULTS / "host.json").write_text(json.dumps(host, indent=1))
    (RESULTS / "doctor.json").write_text(json.dumps(told(Lane(), "doctor"), indent=1))
    queues: Sequence[Sequence[Experiment]] = REHEARSAL if rehearse else QUEUES
    if words and not rehearse:
        queues = [[each] for each in (*chain(*QUEUES), TWO_GPUS) if each.name in words]
    work: list[list[Experiment]] = [[] for _ in lanes]
    for index, experiments in enumerate(queues):
        work[index % len(lanes)] += experiments
    threads = [start(experiments, lane) for experiments, lane in zip(work, lanes, strict=True)]
    if len(lanes) >= 4 and not words:
        threads[1].join()
        threads[3].join()
        conduct(TWO_GPUS, Lane((1, 3)))
    for thread in threads:
        thread.join()
    keep()
    mark("suite: done")


def start(experiments: Sequence[Experiment], lane: Lane) -> threading.Thread:
    """A thread that conducts experiments one after the other."""

    def work() -> None:
        for experiment in experiments:
            conduct(experiment, lane)

    thread = threading.Thread(target=work)
    thread.start()
    return thread


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
    return {
        "gpus": gpus,
        "cpus": os.cpu_count(),
        "ppo-tui": version.stdout.strip(),
        "date": time.strftime("%F"),
    }


if __name__ == "__main__":
    main(sys.argv[1:])
