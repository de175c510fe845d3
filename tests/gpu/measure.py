"""Figures of a run directory: peaks of memory by phase, pace and flags."""

import json
import statistics
from pathlib import Path
from typing import Any

from launcher.console.phases import ORDER

GIB = 2**30
STARTING = frozenset({"start", *ORDER[: ORDER.index("rollout")]})
EDGE = 0.4  # seconds about a change of phase in which a sample may belong to either
TIMERS = (
    ("gen", "rollout"),
    ("reward", "rollout"),
    ("old_log_prob", "log-probabilities"),
    ("ref", "log-probabilities"),
    ("values", "log-probabilities"),
    ("adv", "log-probabilities"),
    ("update_critic", "update critic"),
    ("update_actor", "update actor"),
    ("save_checkpoint", "checkpoint"),
    ("update_weights", "weights to engine"),
)
"""What veRL times within a step, in its order, and the phase of the memory estimate that it is."""


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
    changes = [(event["t"], event["phase"]) for event in lines(run / "events.jsonl") if event.get("kind") == "phase"]
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
        "phases": list(dict.fromkeys(event["phase"] for event in events if event.get("kind") == "phase")),
    }
