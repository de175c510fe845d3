"""Experiments on this host's GPUs, side by side until $UNTIL.

    suite.py [judged] [NAME ...]   runs that are judged blind (judged.py) on the last GPU, experiments of these names
    suite.py rehearse [...]        the same flow with toy-cpu

Started by run.sh, which sets KIT, PPO_TUI and the rest.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import failing
import judged
from conduct import CAPTURES, KIT, RESULTS, Experiment, conduct, mark
from experiments import EXPERIMENTS, REHEARSED
from host import PPO_TUI, Lane, told

APART = 1.5  # seconds between two starts: twenty Ray heads at once would wait for each other


def main(words: Sequence[str]) -> None:
    CAPTURES.mkdir(parents=True, exist_ok=True)
    # a shell ignores it for its background processes, and their children inherit that
    signal.signal(signal.SIGINT, signal.default_int_handler)
    host = describe()
    (RESULTS / "host.json").write_text(json.dumps(host, indent=1))
    (RESULTS / "doctor.json").write_text(json.dumps(told(Lane(), "doctor"), indent=1))
    if "rehearse" in words:
        os.environ.setdefault("PPO_TUI_HOME", str(KIT / "home"))
        for experiment in (each for each in REHEARSED if not words[1:] or each.name in words):
            conduct(experiment, at_home(experiment, Lane()))
        if not words[1:] or "judged" in words:
            judged.judged(None, (*judged.TOYS, *failing.TOYS), places=int(os.environ.get("PLACES", "2")))
    else:
        gpus = len(host["gpus"])
        with ThreadPoolExecutor(len(EXPERIMENTS) + 1) as pool:
            going = (
                [pool.submit(judged.judged, gpus - 1, (*judged.ROWS, *failing.ROWS))]
                if not words or "judged" in words
                else []
            )
            for experiment in (each for each in EXPERIMENTS if not words or each.name in words):
                lane = Lane(tuple(gpu for gpu in experiment.gpus if gpu < gpus))
                going.append(pool.submit(conduct, experiment, at_home(experiment, lane)))
                time.sleep(APART)
            for each in going:
                each.result()
    mark("suite: done")


def at_home(experiment: Experiment, lane: Lane) -> Lane:
    """The lane with the home of an experiment that is apart."""
    home = KIT / f"home-{experiment.name}"
    return replace(lane, more=(*lane.more, ("PPO_TUI_HOME", str(home)))) if experiment.apart else lane


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
