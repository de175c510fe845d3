"""Healthy drivers that are slow: `python stalls_waits.py NAME FOLDER`, started by stalls.py."""

import os
import subprocess
import sys
import time
from typing import Any

from stalls_faults import FOLDER, asking, steps, two_ranks


def slow_cpu() -> None:
    steps()
    until = time.monotonic() + 40
    while time.monotonic() < until:
        sum(range(200_000))
        time.sleep(0.02)
    steps()


def slow_duty() -> None:
    """A quarter of a core, in bursts."""
    steps()
    until = time.monotonic() + 40
    while time.monotonic() < until:
        end = time.process_time() + 0.5
        while time.process_time() < end:
            pass
        time.sleep(1.5)
    steps()


def slow_download() -> None:
    steps()
    with (FOLDER / f"{os.getpid()}.incomplete").open("wb", buffering=0) as file:
        for _ in range(80):
            file.write(b"x" * (16 << 10))  # 32 kB per second
            time.sleep(0.5)
    steps()


def slow_progress() -> None:
    steps()
    for share in range(8):
        print(f"Fetching 8 files: {share}/8", flush=True)
        time.sleep(5)
    steps()


def slow_child() -> None:
    """A compiler that runs for 40 s."""
    steps()
    code = (
        "import time\nend = time.monotonic() + 40\nwhile time.monotonic() < end:\n sum(range(200000)); time.sleep(0.02)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    steps()


def slow_late() -> None:
    """A rank that computes for 40 s, while the other one asks all the time whether it has come."""

    def end(rank: int, dist: Any, grads: Any) -> None:
        until = time.monotonic() + 40 * rank
        while time.monotonic() < until:
            sum(range(200_000))
            time.sleep(0.02)
        asking(dist, grads)
        if rank == 0:
            steps()

    two_ranks("slow_late", end)


def slow_step() -> None:
    """A step of 12 s sleeps 22 s: not yet twice as long."""
    steps(3, 12)
    time.sleep(22)
    steps(1)


def slow_first() -> None:
    """A stage that it never passed, 60 s without a sign."""
    print("Total training steps: 100", flush=True)
    time.sleep(60)
    steps(2)


def slow_data() -> None:
    """A data loader that returns at once, and then reads for 18 s from a disk that nobody sees."""
    from ppo_tui_inside.plugin.spans import Span

    for step, seconds in enumerate((0.2, 0.2, 0.2, 18.0)):
        with Span("data", "trainer"):
            time.sleep(seconds)
        with Span("gen", "trainer"):
            steps(1, after=step)


def slow_judge() -> None:
    """A service that answers in 15 s in each step, then in 25."""
    steps(4, 15)
    time.sleep(25)
    steps(1)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
