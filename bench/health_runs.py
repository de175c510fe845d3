"""Runs for the evaluation of the health rules: the real ones, and longer ones generated from them.

A generated run is a real one stretched in time. Each of its steps is a real step drawn (seeded) from the neighborhood
of its place, moved along the run's own trend: the metrics of one step stay together, and the step-to-step noise is
real. No event is added to those of the short run, and processes that depend on the number of steps (warm-up, a critic
that learns) take longer.
"""

import gzip
import math
import random
from dataclasses import dataclass
from pathlib import Path

from launcher.metrics.records import parse_record
from launcher.verl.config import LOSS_MODE

LOGS = Path(__file__).parents[1] / "tests" / "data" / "logs"
GPU_GB, HOST_GB = (80.0, 256.0)  # assumed: not in the logs; the training processes used 23-27 GB and 54-108 GB

Step = dict[str, float]

# A step follows the trend of these figures by addition, or by multiplication.
_ADDED = (
    "actor/reward_kl_penalty",
    "actor/kl_loss",
    "actor/entropy",
    "critic/score/mean",
    "response_length/mean",
    "response_length/clip_ratio",
    "critic/vf_explained_var",
)
_MULTIPLIED = ("actor/grad_norm", "critic/grad_norm", "critic/vf_loss")
_PEAKS = "max_memory"  # running maxima: they must not fall
_SHARES = ("response_length/clip_ratio", "critic/score/mean")


@dataclass(frozen=True)
class Run:
    """A run without its validation before the first step."""

    name: str
    steps: list[Step]
    limit: int  # tokens a response may have

    @property
    def config(self) -> dict[str, object]:
        return {"data.max_response_length": self.limit, LOSS_MODE: "vanilla"}


REAL = {"learning": 256, "grpo": 256, "two-gpus": 256, "cpu-toy": 8}
STRETCH = {"learning": 5, "grpo": 5, "two-gpus": 8, "cpu-toy": 2}


def real(name: str) -> Run:
    """One of the real runs in tests/data/logs."""
    with gzip.open(LOGS / f"{name}.jsonl.gz") as lines:
        records = [record for line in lines if (record := parse_record(line)) is not None]
    return Run(name, [data for step, data in records if step > 0], REAL[name])


def stretched(name: str, factor: int, seed: int) -> Run:
    """A run `factor` times as long, generated from a real one."""
    source, rng = real(name), random.Random(f"{name} {seed}")
    trends = {key: _trend([step.get(key, math.nan) for step in source.steps]) for key in (*_ADDED, *_MULTIPLIED)}
    scores = {i: step for i, step in enumerate(source.steps) if any("@" in key for key in step)}
    last = len(source.steps) - 1
    steps = []
    for n in range(len(source.steps) * factor):
        place = min(n / factor, last)
        drawn = min(max(round(place) + rng.randint(-2, 2), min(n, 1)), last)  # the first step is slow, once
        step = {key: value for key, value in source.steps[drawn].items() if not key.startswith("val")}
        for key, trend in trends.items():
            if key in step:
                step[key] = _moved(key, step[key], _at(trend, place), trend[drawn])
        step |= {key: value for key, value in source.steps[int(place)].items() if _PEAKS in key}
        if scores and n % 10 == 9:
            nearest = scores[min(scores, key=lambda i: abs(i - place))]
            step |= {k: v + rng.gauss(0, 0.01) for k, v in nearest.items() if k.startswith("val-core")}
        steps.append(step)
    return Run(f"{name} ×{factor} #{seed}", steps, source.limit)


def _trend(values: list[float]) -> list[float]:
    """Mean over five steps."""
    return [
        sum(window) / len(window) if (window := values[max(0, i - 2) : i + 3]) else math.nan for i in range(len(values))
    ]


def _at(trend: list[float], place: float) -> float:
    low = int(place)
    high = min(low + 1, len(trend) - 1)
    return trend[low] + (trend[high] - trend[low]) * (place - low)


def _moved(key: str, value: float, here: float, there: float) -> float:
    if not (math.isfinite(here) and math.isfinite(there)):
        return value
    if key in _MULTIPLIED:
        return value * here / there if there else value
    return min(max(value + here - there, 0.0), 1.0) if key in _SHARES else value + here - there
