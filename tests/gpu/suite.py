"""Runs that are judged blind (judged.toml), on this host's GPUs until $UNTIL.

    suite.py                   the rows for a GPU
    suite.py rehearse          those of the toy on the CPU, PLACES (2) at a time
    suite.py ... proof [NAME]  those of proof.toml instead, all or some, with a supervisor and the first fix of each;
                               with `held` without the fixes, with `fixes` the fixes of those that were held

Started by run.sh, which sets KIT, PPO_TUI and the rest.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

import judged
from host import PPO_TUI, RESULTS, Lane, mark, told
from proof import Held, Watched, fixes


def main(words: Sequence[str]) -> None:
    RESULTS.mkdir(parents=True, exist_ok=True)
    # a shell ignores it for its background processes, and their children inherit that
    signal.signal(signal.SIGINT, signal.default_int_handler)
    host = describe()
    (RESULTS / "host.json").write_text(json.dumps(host, indent=1))
    (RESULTS / "doctor.json").write_text(json.dumps(told(Lane(), "doctor"), indent=1))
    file, kind = ("proof", Held if "held" in words else Watched) if "proof" in words else ("judged", judged.Run)
    found = judged.rows("toy" if "rehearse" in words else "gpu", file)
    found = [row for row in found if row.name in words] or found
    if "fixes" in words:
        found = fixes(found)
    if "rehearse" in words:
        judged.judged((), found, places=int(os.environ.get("PLACES", "2")), kind=kind)
    else:
        judged.judged(range(len(host["gpus"])), found, places=judged.PLACES * len(host["gpus"]), kind=kind)
    mark("suite: done")


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
