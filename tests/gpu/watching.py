"""What watching costs: tokens per second with a supervisor and a screen, and, in turns, with both still."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from host import PPO_TUI, Lane, ppo_tui, status, wait
from terminal import Terminal

from launcher import inside

HERE = Path(__file__).parent
PYTHON = os.environ.get("PPO_TUI_PYTHON", sys.executable)  # the one that has torch
LOG = HERE.parent / "data/logs/cpu-toy.log.gz"  # 36 s of start-up, then 80 steps, one each 2.4 s
TURNS = (True, False, False, True)  # so that what drifts falls on both sides alike
LOOK = 0.1  # seconds between looks at the steps
WARM = 12  # steps of the fixed work before it counts


class Watching:
    """A run's supervisor and its dashboard of 160x48, and the steps of what they might slow down.

    Both are stopped by SIGSTOP: veRL writes to files and does not notice. Steps are read from a file in the
    shape of veRL's file logger, by this process, on either side alike.
    """

    def __init__(self, lane: Lane, run: str, metrics: Path, block: int) -> None:
        """Blocks of so many steps are watched or not; the first of each is mixed and left out."""
        self._lane, self._run, self._metrics, self._block = lane, run, metrics, block
        self._supervisor: int = status(lane, run)["supervisor"]["pid"]

    def measure(self, steps: int, seconds: float) -> dict[str, Any]:
        """Over so many steps, or until the time is up: the rates in each side's blocks, and the CPU used."""
        blocks: dict[bool, list[list[float]]] = {True: [], False: []}
        deadline = time.monotonic() + seconds
        with self._screen() as screen:
            both = (self._supervisor, screen)
            before, watched_for = [_cpu(pid) for pid in both], 0.0
            turns, since = cycle(TURNS), time.monotonic()
            watched = next(turns)
            for done, rate in enumerate(islice(self._rates(deadline), steps)):
                if done % self._block == 1:
                    blocks[watched].append([])
                if done % self._block:
                    blocks[watched][-1].append(rate)
                if (done + 1) % self._block == 0:
                    now = time.monotonic()
                    watched_for += (now - since) if watched else 0
                    watched, since = next(turns), now
                    for pid in both:
                        os.kill(pid, signal.SIGCONT if watched else signal.SIGSTOP)
            watched_for += (time.monotonic() - since) if watched else 0
            spent = [_cpu(pid) - first for pid, first in zip(both, before, strict=True)]
        return {
            "rates": {"watched": blocks[True], "alone": blocks[False]},
            "supervisor_cpu_percent": round(100 * spent[0] / watched_for, 2),
            "screen_cpu_percent": round(100 * spent[1] / watched_for, 2),
        }

    def _rates(self, deadline: float) -> Iterator[float]:
        """Tokens per second of each step that is done from now on."""
        with self._metrics.open("rb") as file:
            file.seek(0, os.SEEK_END)
            rest = b""
            while time.monotonic() < deadline:
                *whole, rest = (rest + file.read()).split(b"\n")
                for line in whole:
                    if "perf/throughput" in (data := json.loads(line)["data"]):
                        yield float(data["perf/throughput"])
                time.sleep(LOOK)

    @contextmanager
    def _screen(self) -> Iterator[int]:
        """An attached screen that stands, as a terminal over SSH reads it; its process id."""
        terminal = Terminal([PPO_TUI, "attach", self._run], self._lane.env(), 160, 48)
        gone = threading.Event()

        def read() -> None:
            while not gone.is_set():
                terminal.pump(0.5)

        reader = threading.Thread(target=read)
        try:
            terminal.wait_for(lambda text: "reward" in text)
            terminal.pump(3)
            reader.start()
            yield terminal.process.pid
        finally:
            with suppress(ProcessLookupError):  # the recorded run may have ended
                os.kill(self._supervisor, signal.SIGCONT)
            gone.set()
            if reader.ident:
                reader.join()
            terminal.close()


def spans_beside_fixed_work(lane: Lane, folder: Path, seconds: float) -> dict[str, Any]:
    """Steps with and without the spans of a step, with the supervisor and a screen beside both."""
    found: dict[bool, list[list[float]]] = {True: [], False: []}
    with _fixed_work(lane, "spans", folder) as (played, metrics, written):
        watching = Watching(lane, played, metrics, block=16)
        began, first = time.monotonic(), metrics.read_bytes().count(b"\n")
        with watching._screen() as screen:
            watchers = {"supervisor": watching._supervisor, "screen": screen}
            before = {name: _cpu(pid) for name, pid in watchers.items()}
            time.sleep(seconds)
            used = {name: round(100 * (_cpu(pid) - before[name]) / seconds, 2) for name, pid in watchers.items()}
            contexts = _on_gpus()
        blocks: dict[int, tuple[bool, list[float]]] = {}
        for number, line in enumerate(metrics.read_text().splitlines()[first:-1], first):
            data = json.loads(line)["data"]
            if number % 16:  # the first of a block is mixed
                blocks.setdefault(number // 16, (data["spans"], []))[1].append(data["perf/throughput"])
        for on, rates in list(blocks.values())[1:-1]:
            found[on].append(rates)
        lines = sum(path.read_bytes().count(b"\n") for path in written.glob("*.jsonl*"))
        watched = {"rates": {"watched": found[True], "alone": found[False]}}  # with spans, and without
        watched |= {f"{name}_cpu_percent": value for name, value in used.items()}
        return {
            "name": "fixed-spans",
            "gpus": list(lane.gpus),
            "watching": watched,
            "seconds": round(time.monotonic() - began),
            "lines_of_spans": lines,
            "with_a_context": contexts,
            "watchers": watchers,
            "a_watcher_has_one": bool({int(pid) for pid in contexts} & set(watchers.values())),
        }


def _on_gpus() -> dict[str, str]:
    """The processes that have a CUDA context, as the driver tells."""
    asked = ["nvidia-smi", "--query-compute-apps=pid,process_name", "--format=csv,noheader"]
    try:
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return {}
    return dict(line.split(", ", 1) for line in done.stdout.splitlines() if ", " in line)


def beside_fixed_work(lane: Lane, kind: str, folder: Path, steps: int) -> dict[str, Any]:
    """Steps that are the same work each, while a recorded run is played and watched beside them on that GPU.

    veRL's own steps of equal work differ by a tenth; those of the kind `update` by much less.
    """
    with _fixed_work(lane, kind, folder) as (played, metrics, _):
        found = Watching(lane, played, metrics, block=16).measure(steps, 150)
    return {"name": f"fixed-{kind}", "gpus": list(lane.gpus), "watching": found}


@contextmanager
def _fixed_work(lane: Lane, kind: str, folder: Path) -> Iterator[tuple[str, Path, Path]]:
    """The run that is played, the metrics of the work, and the folder of the spans: those of the played run."""
    metrics, log = (folder / f"fixed-{kind}.{ending}" for ending in ("jsonl", "log"))
    metrics.unlink(missing_ok=True)
    words = ["replay", str(LOG), "--speed", "1", "--detach", "--json"]
    started = json.loads(ppo_tui(lane, *words).stdout)
    played, spans = started["run"], Path(started["dir"]) / "attempts/1/spans"
    spans.mkdir(parents=True, exist_ok=True)
    env = {**lane.env(), "PPO_TUI_INSIDE": str(inside.FOLDER)}
    work = subprocess.Popen(
        [PYTHON, HERE / "fixed_work.py", kind, metrics, spans], env=env, stdout=log.open("wb"), stderr=subprocess.STDOUT
    )
    try:
        wait(lane, played, 2, 90)
        deadline = time.monotonic() + 120
        while not metrics.exists() or metrics.read_bytes().count(b"\n") < WARM:
            if work.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(log.read_text()[-2000:])
            time.sleep(LOOK)
        yield played, metrics, spans
    finally:
        work.kill()
        work.wait()
        ppo_tui(lane, "stop", played, "--wait")


def _cpu(pid: int) -> float:
    """Seconds of CPU that the threads of a process have had, to the nanosecond (ticks of 10 ms mislead)."""
    return sum(int(file.read_text().split()[0]) for file in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9
