"""Intervals of autocorrelated steps and of few seeds: how often they leave out the truth (docs/evidence/compare.md)."""

import gzip
import json
import math
import random
import statistics
from collections.abc import Sequence
from pathlib import Path

import pytest

from launcher.metrics import intervals
from launcher.metrics.records import read_metrics

LOGS = Path(__file__).parents[1] / "data" / "logs"


def autoregressive(count: int, phi: float, rng: random.Random) -> list[float]:
    """Steps of mean 0 and deviation 1 that remember a share `phi` of the one before."""
    found = [rng.gauss(0, 1)]
    while len(found) < count:
        found.append(phi * found[-1] + math.sqrt(1 - phi * phi) * rng.gauss(0, 1))
    return found


def leaves_out(values: Sequence[float], truth: float = 0.0) -> bool:
    error = intervals.of_steps(values)
    assert error is not None
    return abs(statistics.fmean(values) - truth) > error.reach()


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.8, 0.95])
@pytest.mark.parametrize("count", [12, 40])
def test_runs_that_do_not_differ_are_seldom_told_apart(count: int, phi: float) -> None:
    rng = random.Random(7)
    false = sum(leaves_out(autoregressive(count, phi, rng)) for _ in range(200))
    assert false <= 10  # 5 %


def test_a_difference_is_found() -> None:
    rng = random.Random(8)
    assert sum(leaves_out(autoregressive(40, 0.0, rng), truth=1.0) for _ in range(100)) >= 85
    assert sum(leaves_out(autoregressive(400, 0.8, rng), truth=1.0) for _ in range(40)) >= 32


@pytest.mark.parametrize("key", ["critic/score/mean", "response_length/mean", "perf/throughput"])
@pytest.mark.parametrize("log", ["cpu-toy", "learning", "kl-blowup"])
def test_neighbouring_steps_of_a_recorded_run_are_not_told_apart(log: str, key: str) -> None:
    """The noise of real runs: which of two neighbours is A and which B is drawn again and again."""
    lines = gzip.decompress((LOGS / f"{log}.jsonl.gz").read_bytes()).splitlines()
    data = [read_metrics(json.loads(line)["data"]) for line in lines]
    values = [row[key] for row in data if key in row]
    pairs = [b - a for a, b in zip(values[-24::2], values[-23::2], strict=True)]
    rng = random.Random(9)
    false = sum(leaves_out([pair * rng.choice((-1, 1)) for pair in pairs]) for _ in range(100))
    assert false <= 5


@pytest.mark.parametrize(("first", "second"), [(2, 2), (3, 3), (1, 3), (5, 2)])
def test_groups_of_seeds_are_seldom_told_apart_by_chance(first: int, second: int) -> None:
    rng, false = random.Random(10), 0
    for _ in range(400):
        a, b = ([rng.gauss(0.5, 0.1) for _ in range(count)] for count in (first, second))
        error = intervals.of_seeds(a, b)
        assert error is not None
        false += abs(statistics.fmean(b) - statistics.fmean(a)) > error.reach()
    assert false <= 24  # 5 % and a standard error of that


def test_the_suggested_seeds_show_the_difference() -> None:
    count = intervals.seeds_needed(1.0, 0.8)
    assert count is not None
    rng, found = random.Random(11), 0
    for _ in range(400):
        a, b = ([rng.gauss(mean, 0.8) for _ in range(count)] for mean in (0.0, 1.0))
        error = intervals.of_seeds(a, b)
        found += error is not None and statistics.fmean(b) - statistics.fmean(a) > error.reach()
    assert 0.7 <= found / 400 <= 0.9
    assert intervals.seeds_needed(1e-9, 0.8) is None and intervals.seeds_needed(0.0, 1.0) is None


def test_quantiles_are_those_of_the_tables() -> None:
    table = {(0.975, 1): 12.7062, (0.975, 2): 4.30265, (0.975, 10): 2.22814, (0.8, 4): 0.94096, (0.995, 400): 2.58819}
    assert {key: intervals.quantile(*key) for key in table} == pytest.approx(table, rel=1e-4)


def test_steps_without_noise_and_too_few_steps() -> None:
    same = intervals.of_steps([0.25] * 30)
    assert same is not None and same.reach() == 0
    assert intervals.of_steps([1.0, 2.0] * 5) is None and intervals.of_steps([]) is None
    assert intervals.of_seeds([1.0], [2.0]) is None
