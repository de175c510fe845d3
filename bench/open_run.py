"""Opens large runs: time and memory of the screen before its first chart, and of an import.

    python bench/open_run.py                a run of 10,000 steps of 100 keys: open, and draw four charts
    python bench/open_run.py --million      `import` of a metrics.jsonl of a million steps of ten keys

Prints one line per value. Budgets: open <= 1.5 s, <= 80 MB for the screen, redraw <= 30 ms.
"""

import argparse
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from launcher.metrics.records import StepRecord
from launcher.record.attempt import Exit, LaunchRecord
from launcher.record.info import RunInfo
from launcher.record.layout import RunDir, create
from launcher.record.state import RunState
from launcher.runs.watch.reader import RunReader
from launcher.runs.watch.steps import scored

FOUR = ("critic/score/mean", "actor/kl_loss", "actor/entropy", "perf/throughput")


def make_run(steps: int, keys: int) -> RunDir:
    """A finished run with realistic metrics and the records for `list`."""
    run, now = create("bench"), time.time()
    RunInfo(run.id, "bench", now).write(run.run_yaml)
    attempt = run.add_attempt()
    LaunchRecord(("true",), created=now, run_created=now).write(attempt.launch)
    end = Exit(0, t=now)
    end.write(attempt.exit)
    state = RunState("finished", attempt=1, created=now, started=now, exit=end, step=steps, total=steps, verdict="OK")
    names = [*FOUR, *(f"other/metric_{i}/mean" for i in range(keys - len(FOUR)))]
    generator = random.Random(0)
    with attempt.steps.open("wb") as file:
        for step in range(1, steps + 1):
            data = {name: math.log1p(step) + generator.gauss(0, 0.1) for name in names}
            file.write(StepRecord(step, 1e9 + step, step * 5000, data).to_line())
    scored(run, state).write(run.state)
    return run


def open_run(run: Path) -> None:
    """Opens a run in a separate process, to measure its memory."""
    started = time.perf_counter()
    reader = RunReader(run)
    reader.poll()
    opened = time.perf_counter()
    took = []
    for _ in range(2):
        started_look = time.perf_counter()
        for key in FOUR:
            series = reader.series.get(key)
            assert series is not None
            series.columns(0, 10_000, 140)
        took.append(time.perf_counter() - started_look)
    memory = psutil.Process().memory_info().rss / 2**20
    print(f"steps               {len(reader.series.steps):>8}  keys {len(reader.series.keys())}")
    print(f"open                {opened - started:8.2f} s")
    print(f"four charts, first  {took[0] * 1e3:8.1f} ms")
    print(f"four charts, again  {took[1] * 1e3:8.1f} ms")
    print(f"memory, no screen   {memory:8.0f} MB")


def import_million(steps: int) -> None:
    """`ppo-tui import` of a metrics.jsonl."""
    names = ["critic/score/mean", "actor/entropy", *(f"actor/metric_{i}" for i in range(8))]
    generator = random.Random(0)
    log = Path(os.environ["PPO_TUI_HOME"]) / "million.jsonl"
    with log.open("w") as file:
        for step in range(1, steps + 1):
            data = ", ".join(f'"{name}": {generator.random():.6f}' for name in names)
            file.write(f'{{"step": {step}, "data": {{{data}}}}}\n')
    started = time.perf_counter()
    process = psutil.Popen([sys.executable, "-m", "launcher.cli.main", "import", str(log)], stdout=subprocess.PIPE)
    peak = 0
    while process.poll() is None:
        try:
            peak = max(peak, process.memory_info().rss)
        except psutil.Error:
            break
        time.sleep(0.2)
    if process.wait() != 0:
        raise SystemExit("the import failed")
    seconds = time.perf_counter() - started
    print(f"import of {steps:,} steps of {len(names)} keys: {seconds:.0f} s, peak {peak / 2**20:.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--million", action="store_true")
    parser.add_argument("--open", type=Path)
    parser.add_argument("--steps", type=int)
    arguments = parser.parse_args()
    if arguments.open:
        open_run(arguments.open)
        return
    with tempfile.TemporaryDirectory() as home:
        os.environ["PPO_TUI_HOME"] = home
        if arguments.million:
            import_million(arguments.steps or 1_000_000)
        else:
            run = make_run(arguments.steps or 10_000, 100)
            subprocess.run([sys.executable, __file__, "--open", str(run.path)], check=True)


if __name__ == "__main__":
    main()
