"""Figures of a run directory: peaks of memory by phase, pace, flags, and what watching costs."""

import json
import os
import signal
import statistics
import threading
import time
from pathlib import Path
from typing import Any

import psutil
from host import PPO_TUI, Lane
from terminal import Terminal

GIB = 2**30
START = 3  # seconds in which a screen is up
BLOCK = 4  # steps with the screen and the supervisor, as many without; the first of each block is mixed


def lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a jsonl file; a half last line is left out."""
    found = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def peaks(run: Path) -> dict[str, float]:
    """The most GPU memory (GiB, of the fullest GPU; of the host where there is none) in each phase."""
    changes = [
        (event["t"], event["phase"]) for event in lines(run / "events.jsonl") if event.get("kind") == "phase"
    ]
    most: dict[str, float] = {}
    for sample in lines(run / "gpu.jsonl"):
        phase = next((name for t, name in reversed(changes) if t <= sample["t"]), "start")
        used = [gpu["used"] or 0 for gpu in sample["gpus"]] or [sample["run"]["rss"] or 0]
        most[phase] = max(most.get(phase, 0.0), round(max(used) / GIB, 2))
    return most


def figures(run: Path, attempt: int = 1) -> dict[str, Any]:
    """Steps, seconds to the first, pace, veRL's own peaks, and the flags with the step at which they rose."""
    steps = lines(run / f"attempts/{attempt}/steps.jsonl")
    events = lines(run / "events.jsonl")
    data = [step["data"] for step in steps]

    def last_of(key: str) -> list[float]:
        return [float(each[key]) for each in data if isinstance(each.get(key), (int, float))]

    began = json.loads((run / f"attempts/{attempt}/launch.json").read_text())["created"]
    paces, speeds = last_of("perf/time_per_step")[1:], last_of("perf/throughput")[1:]
    kinds = ("perf/max_memory_allocated_gb", "perf/max_memory_reserved_gb", "perf/cpu_memory_used_gb")
    flags = [
        {"step": event["step"], "rule": event["rule"], "to": event["to"], "message": event["message"]}
        for event in events
        if event.get("kind") == "health" and event.get("to") in ("WARN", "CRITICAL")
    ]
    return {
        "steps": len(steps),
        "last_step": steps[-1]["step"] if steps else None,
        "first_step_seconds": round(steps[0]["t"] - began, 1) if steps else None,
        "seconds_per_step": round(statistics.median(paces), 2) if paces else None,
        "tokens_per_second": round(statistics.median(speeds)) if speeds else None,
        "verl_peaks": {key: round(max(last_of(key)), 2) for key in kinds if last_of(key)},
        "peaks": peaks(run),
        "flags": flags,
    }


class Watching:
    """Tokens per second with the supervisor and a screen, and with both standing still, in turns in one run.

    The supervisor is stopped by SIGSTOP: veRL writes to a file and does not notice. Its steps are read from
    veRL's own metrics file.
    """

    def __init__(self, lane: Lane, run: Path, supervisor: int) -> None:
        self._lane, self._run, self._supervisor = lane, run, supervisor
        self._metrics = run / "attempts/1/metrics.jsonl"
        self._terminal: Terminal | None = None
        self._screen_cpu = self._shown = self._since = self._before = 0.0

    def measure(self, steps: int, seconds: float) -> dict[str, Any]:
        """Over so many steps, or until the time is up; returns both medians and the CPU it took."""
        rates: dict[bool, list[float]] = {True: [], False: []}
        cpu, began = _cpu(self._supervisor), time.monotonic()
        first = seen = len(lines(self._metrics))
        watched = True
        self._show()
        while seen < first + steps and time.monotonic() - began < seconds:
            time.sleep(0.5)
            found = lines(self._metrics)
            for record in found[seen:]:
                if (seen - first) % BLOCK:  # not the step in which the screen came or went
                    rates[watched].append(float(record["data"]["perf/throughput"]))
                seen += 1
                if (seen - first) % BLOCK == 0:
                    watched = not watched
                    if watched:
                        self._show()
                    else:
                        self._hide()
        self._hide()
        os.kill(self._supervisor, signal.SIGCONT)
        spent = time.monotonic() - began
        median = {side: statistics.median(values) if values else 0.0 for side, values in rates.items()}
        return {
            "steps": {"watched": len(rates[True]), "alone": len(rates[False])},
            "tokens_per_second": {"watched": round(median[True], 1), "alone": round(median[False], 1)},
            "rates": {"watched": rates[True], "alone": rates[False]},
            "supervisor_cpu_percent": round(100 * (_cpu(self._supervisor) - cpu) / spent, 2),
            "screen_cpu_percent": round(100 * self._screen_cpu / max(self._shown, 1), 2),
        }

    def _show(self) -> None:
        """Wakes the supervisor and attaches a screen; its CPU counts from when it stands."""
        os.kill(self._supervisor, signal.SIGCONT)
        terminal = Terminal([PPO_TUI, "attach", self._run.name], self._lane.env(), 160, 48)
        self._terminal = terminal
        threading.Thread(target=self._drain, args=(terminal,), daemon=True).start()
        time.sleep(START)
        self._since, self._before = time.monotonic(), _cpu(terminal.process.pid)

    def _drain(self, terminal: Terminal) -> None:
        while terminal is self._terminal:
            terminal.pump(0.5)

    def _hide(self) -> None:
        """Closes the screen, stops the supervisor."""
        terminal, self._terminal = self._terminal, None
        if terminal is not None:
            self._screen_cpu += _cpu(terminal.process.pid) - self._before
            self._shown += time.monotonic() - self._since
            time.sleep(1)  # for the thread that drains it
            terminal.close()
            os.kill(self._supervisor, signal.SIGSTOP)


def _cpu(pid: int) -> float:
    """Seconds of CPU that a process has had."""
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)
