"""The cost of long lists of runs: the command, and the first page of the screen."""

import itertools
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from meter import Meter
from subjects import environment

sys.path.insert(0, str(Path(__file__).parents[1]))
from open_run import make_run

PROGRAM = str(Path(sys.executable).with_name("ppo-tui"))
STEPS, NUMBERS = 20, 20  # of a run
STARTS, KEYS, IDLE = 3, 200, 20.0  # seconds of IDLE


def measure(count: int) -> list[str]:
    """One line per figure."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PPO_TUI_HOME"] = folder
        for _ in range(count):
            make_run(STEPS, NUMBERS)
        lists = [_list() for _ in range(STARTS)]
        meter = Meter([PROGRAM], environment(), (80, 24))
        try:
            first = meter.until("finished")
            meter.settle(60)
            idle = meter.window(IDLE)
            answers = sorted(meter.answer(key) for key in itertools.islice(itertools.cycle("jjjkjk"), KEYS))
        finally:
            meter.close()
    cpu = ", ".join(f"{seconds:.1f}" for seconds in lists)
    return [
        f"`list` of {count:,} runs: {cpu} s of CPU",
        f"first rows of the screen: {first:.1f} s",
        f"idle: {idle.cpu:.1f} % of a core, {idle.bytes_s:,.0f} bytes/s",
        f"{KEYS} keys: median {1000 * statistics.median(answers):.0f} ms, "
        f"95 % within {1000 * answers[int(0.95 * KEYS)]:.0f} ms, last {1000 * answers[-1]:.0f} ms",
    ]


def _list() -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([PROGRAM, "list"], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
