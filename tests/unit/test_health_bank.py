"""The rules on the calibration half of tests/data/bank: real runs, healthy ones and ones with a planted fault."""

import health_bank as bank
import pytest
from tables import parts, tabled

from launcher.record.levels import Level

FOUND, FOUND_LATE = (
    {(fault, strength): step for (fault, strength), step in parts("health_bank")[name][1]}
    for name in ("FOUND", "FOUND_LATE")
)


@pytest.mark.nightly("launcher/health/", "bench/", "tests/data/bank/")
@pytest.mark.slow
def test_healthy_runs_are_let_alone_and_planted_faults_found() -> None:
    """In 4,145 healthy steps CRITICAL stays rare; each fault that is found stays found, and as early.

    `long grpo count 1` has nothing planted, and in the end all of its responses are cut.
    """
    found = {run.name: (run, bank.alarms(run)) for run in bank.runs("calibration")}
    healthy = {name: alarms for name, (run, alarms) in found.items() if not run.fault}
    assert len(healthy) == 36
    critical = {name: len(alarms[Level.CRITICAL]) for name, alarms in healthy.items() if alarms[Level.CRITICAL]}
    assert critical == {"long grpo count 1": 2}
    assert sum(len(alarms[Level.WARN]) for alarms in healthy.values()) <= 20
    for limits, forks in ((FOUND, False), (FOUND_LATE, True)):
        first = {
            (run.fault, run.strength): alarms[Level.WARN][0][0] - run.planted
            for run, alarms in found.values()
            if run.fault and alarms[Level.WARN] and bool(run.before) is forks
        }
        late = {fault: (first.get(fault), by) for fault, by in limits.items() if first.get(fault, 10**6) > by}
        assert not late


@tabled
def test_what_went_wrong_by_itself_is_told_by_the_outcome(
    longest: int, shares: list[float], scores: list[float], said: str
) -> None:
    cut = [{"response_length/clip_ratio": share, "response_length/max": longest} for share in shares]
    rewards = [{"critic/score/mean": score} for score in scores]
    run = bank.BankRun("run", "", "", {"data.max_response_length": 8})
    run.steps.extend((step, 0.0, data) for step, data in enumerate([*cut, *rewards]))
    assert bank.gone_wrong(run).startswith(said) and bool(bank.gone_wrong(run)) is bool(said)
