"""The rules on the calibration half of tests/data/bank: real runs, healthy ones and ones with a planted fault."""

import importlib
from pathlib import Path
from typing import Any

import pytest

from launcher.record.levels import Level

BENCH = Path(__file__).parents[2] / "bench"
FOUND = {  # the last step by which a fault is to be found, by fault and strength
    ("actor lr", "x30"): 2,
    ("actor lr", "x300"): 2,
    ("clip ratio 5, epochs", "6"): 2,
    ("constant reward", "all"): 10,
    ("entropy coefficient", "0.3"): 20,
    ("gamma", "0.1"): 2,
    ("response limit", "4"): 11,
    ("temperature", "3"): 5,
}


@pytest.fixture
def bank(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCH))
    return importlib.import_module("health_bank")


@pytest.mark.slow
def test_healthy_runs_are_let_alone_and_planted_faults_found(bank: Any) -> None:
    """No CRITICAL and two WARN in 481 healthy steps; each fault that is found stays found, and as early."""
    found = {run.name: (run, bank.alarms(run)) for run in bank.runs("calibration")}
    healthy = [alarms for run, alarms in found.values() if not run.fault]
    assert len(healthy) == 16
    assert sum(len(alarms[Level.CRITICAL]) for alarms in healthy) == 0
    assert sum(len(alarms[Level.WARN]) for alarms in healthy) <= 2
    first = {
        (run.fault, run.strength): alarms[Level.WARN][0][0]
        for run, alarms in found.values()
        if run.fault and alarms[Level.WARN]
    }
    late = {fault: (first.get(fault), by) for fault, by in FOUND.items() if first.get(fault, 10**6) > by}
    assert not late
