"""The GPU suite: the phase of a step that a sample of memory belongs to."""

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
    for folder in ("tests/support", "tests/gpu"):
        monkeypatch.syspath_prepend(str(ROOT / folder))
    return importlib.import_module("measure")


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
