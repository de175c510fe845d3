"""What spans and the short poll interval change in a step of the CPU toy: docs/evidence/time.md.

`python experiments/step_cost.py [BLOCKS]` makes runs in blocks of six: as it is, without spans, with veRL's poll
interval, then the same in reverse order. It prints a line per run, then the differences between neighbors. Each run
takes /tmp/toy.lock, so that only one toy trains at a time.
"""

import fcntl
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil

from launcher.metrics.intervals import quantile
from launcher.record.layout import RunDir, find
from launcher.record.process import run_members
from launcher.record.state import current

PPO_TUI = str(Path(sys.executable).parent / "ppo-tui")
STEPS, WARM = 20, 3
SETTINGS = (
    f"trainer.steps={STEPS}",
    "trainer.validate_first=false",
    "trainer.validate_every=-1",
    "trainer.save_every=-1",
)
KINDS = {"as it is": (), "without spans": ("env.PPO_TUI_SPANS=0",), "veRL's interval": ("env.PPO_TUI_POLL_INTERVAL=0",)}


def measured(kind: str) -> dict[str, float]:
    """Of one run from step WARM to its end: seconds per step, and seconds of CPU of all its processes per step."""
    words = [PPO_TUI, "run", "toy-cpu", *SETTINGS, *KINDS[kind], "--force", "--detach"]
    id = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    run, used = find(id), dict[int, float]()
    while (state := current(run, checks=False)).live:
        if state.step and state.step not in used and state.driver is not None:
            used[state.step] = sum(_cpu(each) for each in run_members(state.driver, run.id))
        time.sleep(0.1)
    seconds = [each for step, each in _steps(run) if step > WARM]
    first, last = WARM, max(step for step in used if step < STEPS)
    return {"wall": statistics.fmean(seconds), "cpu": (used[last] - used[first]) / (last - first)}


def _cpu(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.Error:
        return 0.0
    return times.user + times.system


def _steps(run: RunDir) -> Iterator[tuple[int, float]]:
    for line in run.attempt(1).metrics.read_text().splitlines():
        record = json.loads(line)
        if "timing_s/step" in record["data"]:
            yield record["step"], record["data"]["timing_s/step"]


def difference(rows: list[tuple[str, Mapping[str, float]]], kind: str, what: str) -> str:
    """Of neighbors: another kind less what it is, with Student's interval."""
    found = []
    for block in range(0, len(rows), 3):
        here = dict(rows[block : block + 3])
        found.append(here[kind][what] - here["as it is"][what])
    mean, error = statistics.fmean(found), statistics.stdev(found) / len(found) ** 0.5
    reach = error * quantile(0.975, len(found) - 1)
    return (
        f"{kind}, {what}: {mean:+.3f} s per step (from {mean - reach:+.3f} to {mean + reach:+.3f}, {len(found)} pairs)"
    )


def main() -> None:
    """Makes the runs and prints what they took."""
    blocks, rows = int(sys.argv[1]) if sys.argv[1:] else 3, list[tuple[str, Mapping[str, float]]]()
    for _ in range(blocks):
        for kind in [*KINDS, *reversed(KINDS)]:
            with Path("/tmp/toy.lock").open("a") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                rows.append((kind, measured(kind)))
            print(json.dumps({"kind": kind, **rows[-1][1], "load": os.getloadavg()[0]}), flush=True)
    for kind in list(KINDS)[1:]:
        for what in ("wall", "cpu"):
            print(difference(rows, kind, what))


if __name__ == "__main__":
    main()
