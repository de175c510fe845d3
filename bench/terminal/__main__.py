"""The cost of the screen on a terminal, compared with its peers on the same metrics.

    python bench/terminal                 about four minutes; prints the table of docs/evidence/performance.md
    python bench/terminal --runs 5000     ppo-tui alone, with so many runs in its list

ppo-tui shows a run with its real supervisor; W&B leet reads the `.wandb` file of the same metrics; textual-plot only
draws four of them. A peer that cannot be installed is left out with a note.
"""

import argparse
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import date
from importlib.metadata import version
from pathlib import Path

import many_runs
import psutil
from meter import Meter, Window
from subjects import Size, Subject, leet, mosh, ours, plain, textual_plot, tmux

HOME, _, LARGE = SIZES = (80, 24), (120, 36), (160, 48)
STARTS = 5
SETTLE, IDLE, LIVE = 4.0, 4.0, 8.0  # seconds; SETTLE at most
Way = Callable[[list[str], Size], AbstractContextManager[Meter]]


@dataclass
class Costs:
    """The measurements of one program."""

    first: float = 0.0
    memory: float = 0.0
    idle: dict[Size, Window] = field(default_factory=dict)
    live: dict[Size, Window] = field(default_factory=dict)
    through: dict[str, Window] = field(default_factory=dict)


def measure(subject: Subject, go: Path) -> Costs:
    """Measures one program; the file `go` starts the steps."""
    costs = Costs()
    starts = []
    for _ in range(STARTS):
        with plain(subject.command, HOME) as meter:
            starts.append(meter.until(subject.mark))
    costs.first = statistics.median(starts)
    for size in SIZES:
        with plain(subject.command, size) as meter:
            meter.until(subject.mark)
            meter.settle(SETTLE)
            costs.idle[size] = meter.window(IDLE)
            costs.live[size] = _live(meter, go)
            costs.memory = max(costs.memory, meter.memory())
    ways: dict[str, Way] = {"tmux": tmux, "mosh": mosh}
    for name, way in ways.items():
        if shutil.which(name):
            with way(subject.command, LARGE) as meter:
                meter.until(subject.mark)
                meter.settle(SETTLE)
                costs.through[name] = _live(meter, go)
    return costs


def _live(meter: Meter, go: Path) -> Window:
    go.touch()
    try:
        meter.read(1.5)
        return meter.window(LIVE)
    finally:
        go.unlink()


def table(results: dict[str, Costs]) -> str:
    """The table in Markdown."""

    def row(label: str, text: Callable[[Costs], str]) -> str:
        return f"| {label} | {' | '.join(text(costs) for costs in results.values())} |"

    def size_rows(size: Size) -> list[str]:
        name = f"{size[0]}x{size[1]}"
        return [
            row(f"{name}, one step per second: bytes/s", lambda f: f"{f.live[size].bytes_s:,.0f}"),
            row(f"{name}: the same behind `ssh -C`", lambda f: f"{f.live[size].zlib_s:,.0f}"),
            row(f"{name}, no step: bytes/s", lambda f: f"{f.idle[size].bytes_s:,.0f}"),
            row(f"{name}, one step per second: CPU", lambda f: f"{f.live[size].cpu:.1f} %"),
            row(f"{name}, no step: CPU", lambda f: f"{f.idle[size].cpu:.1f} %"),
        ]

    def through(way: str) -> Callable[[Costs], str]:
        return lambda f: f"{f.through[way].bytes_s:,.0f}" if way in f.through else "not measured"

    return "\n".join(
        [
            f"| | {' | '.join(results)} |",
            f"| --- |{' --- |' * len(results)}",
            row(f"first frame with values, 80x24, median of {STARTS}", lambda f: f"{f.first:.2f} s"),
            *(line for size in SIZES for line in size_rows(size)),
            *(row(f"160x48, one step per second, through {way}: bytes/s", through(way)) for way in ("tmux", "mosh")),
            row("resident memory, with its children", lambda f: f"{f.memory:.0f} MB"),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", choices=["ppo-tui"], help="no peers")
    parser.add_argument("--runs", type=int, help="measures the list of so many runs instead")
    asked = parser.parse_args()
    if asked.runs:
        print("\n".join([*many_runs.measure(asked.runs), _machine()]))
        return
    results: dict[str, Costs] = {}
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        go = scratch / "go"
        for name, program in {"ppo-tui": ours, "W&B leet": leet, "textual-plot": textual_plot}.items():
            if asked.only not in (None, name):
                continue
            try:
                with program(go, scratch) as subject:
                    print(f"measuring {subject.name}", file=sys.stderr)
                    results[subject.name] = measure(subject, go)
            except (OSError, RuntimeError, subprocess.SubprocessError) as error:
                print(f"{name} is left out: {' '.join(str(error).split())[:300]}", file=sys.stderr)
    if "ppo-tui" not in results:
        raise SystemExit(1)
    print(f"{table(results)}\n\n{_machine()}")


def _machine() -> str:
    load, cores = os.getloadavg()[0], psutil.cpu_count()
    versions = f"Python {platform.python_version()}, Textual {version('textual')}"
    return f"{date.today()}, {cores} cores, load {load:.1f} at the end, {versions}."


if __name__ == "__main__":
    main()
