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
STARTING = ("start", "config", "ray", "data", "model", "engine", "checkpoint-load", "validate-first")
START = 3  # seconds in which a screen is up
EDGE = 0.4  # seconds about a change of phase in which a sample may belong to either
TIMERS = (
    ("gen", "rollout"), ("reward", "rollout"), ("old_log_prob", "log-probabilities"),
    ("ref", "log-probabilities"), ("values", "log-probabilities"), ("adv", "log-probabilities"),
    ("update_critic", "update critic"), ("update_actor", "update actor"), ("save_checkpoint", "checkpoint"),
    ("update_weights", "weights to engine"),
)  # fmt: skip
"""What veRL times within a step, in its order, and the phase of the memory estimate that it is."""

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
    """The most memory that the run held (GiB, on its fullest GPU; of the host without one) in each phase.

    The console names the phases up to the first step; within steps veRL's timers tell them. The allocator
    keeps what an earlier phase of the step needed, so a later one may seem to need it too.
    """
    changes = [
        (event["t"], event["phase"]) for event in lines(run / "events.jsonl") if event.get("kind") == "phase"
    ]
    timed = [span for file in run.glob("attempts/*/steps.jsonl") for span in spans(lines(file))]
    most: dict[str, float] = {}
    for sample in lines(run / "gpu.jsonl"):
        phase = next((name for t, name in reversed(changes) if t <= sample["t"]), "start")
        if phase not in STARTING:
            phase = next((name for a, b, name in timed if a + EDGE <= sample["t"] <= b - EDGE), "step")
        held = [gpu["used"] if gpu["run_used"] is None else gpu["run_used"] for gpu in sample["gpus"]]
        used = [each or 0 for each in held or [sample["run"]["rss"]]]
        most[phase] = max(most.get(phase, 0.0), round(max(used) / GIB, 2))
    return most


def spans(steps: list[dict[str, Any]]) -> list[tuple[float, float, str]]:
    """Begin, end and phase of everything that veRL timed, by the clock of the samples.

    A step's line is written when it and the validation after it are over.
    """
    found: list[tuple[float, float, str]] = []
    for step in steps:
        seconds = {key[9:]: value for key, value in step["data"].items() if key.startswith("timing_s/")}
        at = step["t"] - seconds.get("testing", 0) - seconds.get("step", 0)
        for timer, phase in TIMERS:
            end = at + seconds.get(timer, 0)
            if found and found[-1][1:] == (at, phase):
                at = found.pop()[0]
            found.append((at, end, phase))
            at = end
        found.append((step["t"] - seconds.get("testing", 0), step["t"], "validate"))
    return found


def figures(run: Path, attempt: int = 1) -> dict[str, Any]:
    """Steps, seconds to the first, pace, veRL's own peaks, and the flags with the step at which they rose."""
    steps = lines(run / f"attempts/{attempt}/steps.jsonl")
    events = lines(run / "events.jsonl")
    data = [step["data"] for step in steps]

    def last_of(key: str) -> list[float]:
        return [float(each[key]) for each in data if isinstance(each.get(key), (int, float))]

    began = json.loads((run / f"attempts/{attempt}/launch.json").read_text())["created"]
    paces, speeds = last_of("perf/time_per_step")[1:], last_of("perf/throughput")[1:]
    kinds = {
        name: [value for model in ("actor", "critic") for value in last_of(f"{model}/perf/{name}")]
        for name in ("max_memory_allocated_gb", "max_memory_reserved_gb", "cpu_memory_used_gb")
    }
    flags = [
        {"step": event["step"], "rule": event["rule"], "to": event["to"], "message": event["message"]}
        for event in events
        if event.get("kind") == "health" and event.get("to") in ("WARN", "CRITICAL")
    ]
    return {
        "steps": len(steps),
        "last_step": steps[-1]["step"] if steps else None,
        "first_step_seconds": next((round(step["t"] - began, 1) for step in steps if step["step"]), None),
        "seconds_per_step": round(statistics.median(paces), 2) if paces else None,
        "tokens_per_second": round(statistics.median(speeds)) if speeds else None,
        "verl_peaks": {name: round(max(values), 2) for name, values in kinds.items() if values},
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
                    print(f"{seen} steps; now {'watched' if watched else 'alone'}", flush=True)
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
