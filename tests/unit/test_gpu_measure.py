"""The GPU suite: the phase of a step that a sample of memory belongs to, and what watching costs."""

import importlib
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
GIB = 2**30


@pytest.fixture
def measure(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return of_the_suite("measure", monkeypatch)


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return of_the_suite("report", monkeypatch)


def of_the_suite(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    for folder in ("tests/support", "tests/gpu"):
        monkeypatch.syspath_prepend(str(ROOT / folder))
    return importlib.import_module(name)


def write(file: Path, records: list[dict[str, Any]]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(record) + "\n" for record in records))


def sample(t: float, run: float | None, used: float) -> dict[str, Any]:
    gpu = {"used": int(used * GIB), "run_used": None if run is None else int(run * GIB)}
    return {"t": t, "run": {"rss": 0}, "gpus": [gpu]}


def test_samples_within_a_step_go_to_the_phase_that_verl_timed(measure: ModuleType, tmp_path: Path) -> None:
    """Step 1 took 10 s from t=100 on, and its validation 5; its line came at 115."""
    timers = {"step": 10, "gen": 4, "old_log_prob": 1, "ref": 1, "update_actor": 3, "testing": 5}
    data: dict[str, float] = {f"timing_s/{name}": seconds for name, seconds in timers.items()}
    data |= {"actor/perf/max_memory_allocated_gb": 3.0, "critic/perf/max_memory_allocated_gb": 4.126}
    write(tmp_path / "attempts/1/steps.jsonl", [{"step": 1, "t": 115.0, "data": data}])
    (tmp_path / "attempts/1/launch.json").write_text('{"created": 90.0}')
    phases = [(91, "engine"), (100, "rollout"), (110, "validate")]
    write(tmp_path / "events.jsonl", [{"kind": "phase", "t": t, "phase": name} for t, name in phases])
    write(
        tmp_path / "gpu.jsonl",
        [
            sample(95, 40, 60),
            sample(102, 50, 70),
            sample(104.1, 48, 68),  # the last: too near to the change
            sample(105, 20, 40),
            sample(107.5, 30, 50),
            sample(112, None, 45),
        ],
    )
    found = measure.figures(tmp_path)
    assert found["peaks"] == {
        "engine": 40,
        "rollout": 50,
        "step": 48,
        "log-probabilities": 20,
        "update actor": 30,
        "validate": 45,
    }
    assert found["verl_peaks"] == {"max_memory_allocated_gb": 4.13}


@pytest.mark.slow
def test_the_documentation_says_what_was_measured_of_watching(report: ModuleType) -> None:
    page = (ROOT / "docs/evidence/gpus.md").read_text()
    for line in (ROOT / "tests/data/gpu/watching.jsonl").read_text().splitlines():
        assert "| " + " | ".join(map(str, report.watching(json.loads(line)))) + " |" in page


def test_watching_costs_an_update_less_than_a_hundredth(report: ModuleType) -> None:
    first = (ROOT / "tests/data/gpu/watching.jsonl").read_text().splitlines()[0]
    rates = json.loads(first)["watching"]["rates"]
    low, high = report.interval(rates["watched"], rates["alone"])
    assert -1 < low < high < 1


def test_a_difference_that_is_there_is_seen(report: ModuleType) -> None:
    """Two per cent fewer tokens in steps that differ by one, each block with a drift of its own."""
    alone = [[100 + drift + step % 3 - 1 for step in range(8)] for drift in (-1, 0, 1, 0) * 5]
    watched = [[rate * 0.98 for rate in block] for block in alone]
    low, high = report.interval(watched, alone)
    assert low < -2 < high < 0


def test_a_gpu_that_stands_idle_between_two_queued_runs_is_seen(report: ModuleType) -> None:
    spans = [((0,), 10, 100), ((1,), 12, 90), ((0, 1), 130, 200), ((0,), 205, 260)]
    runs = [{"gpus": list(gpus), "begun": 5, "waited": begun - 5, "ended": ended} for gpus, begun, ended in spans]
    skipped = {"gpus": [], "begun": 5, "skipped": "V1"}
    assert report.gaps([*runs[::-1], skipped]) == [
        "GPU 0: 3 runs, seconds between them [30, 5]",
        "GPU 1: 2 runs, seconds between them [40]",
    ]
