"""many.py JOBS < LINES: runs the toy in parallel, one run per line of settings or of `fork`; measures the runs and the
host.

Writes $KIT/results/many.jsonl: a line for each run when it has ended, and one for all of them.
"""

import json
import os
import shlex
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil

from launcher.record.layout import RunDir
from launcher.record.state import ALIVE, current

PPO_TUI = os.environ["PPO_TUI"]
RESULTS = Path(os.environ["KIT"]) / "results" / "many.jsonl"
QUICK = ("trainer.validate_first=false", "trainer.validate_every=-1", "cluster.cpus=6")  # lines win


def one(settings: Sequence[str]) -> dict[str, Any]:
    """Starts a run and waits for its end. Seconds are from its start; `first` is to the end of step 1."""
    begin = time.monotonic()
    start = [] if settings[:1] == ["fork"] else ["run", "toy-cpu", *QUICK]
    words = [PPO_TUI, *start, *settings, "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if not done.stdout:
        return {"settings": settings, "state": "not started", "said": done.stderr.strip()[-300:]}
    run, first = RunDir(Path(json.loads(done.stdout.splitlines()[0])["dir"])), None
    while (state := current(run)).state in ALIVE:
        if first is None and (state.step or 0) >= 1:
            first = round(time.monotonic() - begin)
        time.sleep(1)
    ended = round(time.monotonic() - begin)
    return {"run": run.id, "settings": settings, "state": state.state, "steps": state.step} | {
        "first": first,
        "seconds": ended,
    }


def main() -> None:
    jobs, lines = int(sys.argv[1]), [shlex.split(line) for line in sys.stdin if line.strip()]
    before, begin, lock, rows = psutil.virtual_memory().used, time.monotonic(), threading.Lock(), []

    def kept(settings: Sequence[str]) -> None:
        row = one(settings)
        with lock, RESULTS.open("a") as out:
            rows.append(row)
            out.write(json.dumps(row) + "\n")

    busy, used = [], 0
    with ThreadPoolExecutor(jobs) as pool:
        runs = [pool.submit(kept, settings) for settings in lines]
        while not all(run.done() for run in runs):
            busy.append(psutil.cpu_percent(1))
            used = max(used, psutil.virtual_memory().used - before)
    firsts = [row["first"] for row in rows if row.get("first")]
    later = [
        (row["seconds"] - row["first"]) / (row["steps"] - 1) for row in rows if row.get("first") and row["steps"] > 1
    ]
    whole = {
        "runs": len(rows),
        "finished": sum(row["state"] == "finished" for row in rows),
        "jobs": jobs,
        "cpus": psutil.cpu_count(),
        "seconds": round(time.monotonic() - begin),
        "first_step": statistics.median(firsts) if firsts else None,
        "seconds_a_step": round(statistics.median(later), 2) if later else None,
        "busy_percent": round(statistics.mean(busy)),
        "memory_gb": round(used / 1e9, 1),
    }
    with RESULTS.open("a") as out:
        out.write(json.dumps(whole) + "\n")
    print(json.dumps(whole), flush=True)


if __name__ == "__main__":
    main()
