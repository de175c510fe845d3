"""The checklist on real veRL runs: tests/data/logs, made with veRL 0.9.1 on H200 GPUs and on a CPU."""

import gzip
from pathlib import Path

import pytest

from launcher.health.checklist import Checklist
from launcher.metrics.records import parse_record
from launcher.record.events import LevelChange
from launcher.record.levels import Level

LOGS = Path(__file__).parents[1] / "data" / "logs"
CONFIG = {"data.max_response_length": 256, "actor_rollout_ref.actor.loss_agg_mode": "token-mean"}

Records = list[tuple[int, dict[str, float]]]


def records(name: str) -> Records:
    with gzip.open(LOGS / f"{name}.jsonl.gz") as lines:
        return [record for line in lines if (record := parse_record(line)) is not None]


def judged(name: str) -> tuple[Checklist, list[LevelChange]]:
    checklist = Checklist(CONFIG, gpu_total_gb=139.8, host_total_gb=1000.0, clock=False)
    return checklist, [change for step, data in records(name) for change in checklist.step(step, data)]


def flags(changes: list[LevelChange], at_least: Level) -> list[tuple[str, int, Level]]:
    return [
        (change.rule, change.step, change.after)
        for change in changes
        if change.after >= at_least and change.after > change.before
    ]


@pytest.mark.parametrize("name", ["learning", "grpo", "two-gpus", "resume"])
def test_healthy_runs_have_nothing_worse_than_what_is_true_of_them(name: str) -> None:
    """Two thirds of their answers are cut off at 256 tokens: a weak model, and worth a NOTICE."""
    checklist, changes = judged(name)
    assert flags(changes, Level.WARN) == []
    assert {rule for rule, _, _ in flags(changes, Level.NOTICE)} <= {"TRUNC-1"}
    assert checklist.verdict in (Level.NOTICE, Level.WARM)


def test_a_kl_that_climbs_without_buying_reward() -> None:
    """The actor's learning rate was a hundred times too high; the KL climbs steadily."""
    _, changes = judged("kl-blowup")
    found = {after: (rule, step) for rule, step, after in flags(changes, Level.WARN) if rule == "KL-4"}
    assert found == {Level.WARN: ("KL-4", 11), Level.CRITICAL: ("KL-4", 17)}
    assert {rule for rule, _, _ in flags(changes, Level.WARN)} == {"KL-1", "KL-4", "TRUNC-1"}
    drift = [(step, after) for rule, step, after in flags(changes, Level.NOTICE) if rule == "KL-1"]
    assert drift[0] == (7, Level.WARN)  # against its first values: two thirds of the responses are cut meanwhile


def test_the_toy_learns_well_and_is_not_warned() -> None:
    """Large steps and a KL that climbs, while the reward goes from 0.3 to 0.85: what pays is a NOTICE."""
    checklist = Checklist({"data.max_response_length": 8}, clock=False)
    changes = [change for step, data in records("cpu-toy") for change in checklist.step(step, data)]
    assert flags(changes, Level.WARN) == []
    assert {rule for rule, _, _ in flags(changes, Level.NOTICE)} == {"KL-1", "KL-2", "GRAD-1"}


def test_a_run_that_diverges_at_once() -> None:
    """Its first step has two bad grad norms, which veRL skips: a warning. The second is beyond doubt."""
    checklist, changes = judged("nan")
    found = [(step, after) for rule, step, after in flags(changes, Level.WARN) if rule == "NUM-1"]
    assert found == [(1, Level.WARN), (2, Level.CRITICAL)]
    assert checklist.verdict == Level.CRITICAL


def test_the_critic_of_a_grpo_run_is_not_judged() -> None:
    checklist, _ = judged("grpo")
    levels = {row.rule: row.level for row in checklist.checks()}
    assert levels["CRIT-1"] == Level.N_A
    assert min(levels[rule] for rule in ("KL-1", "KL-4", "SIG-1", "MIS-1", "THR-1", "VAL-1")) == Level.OK


def test_replayed_is_as_live() -> None:
    """Ticks and log lines between the steps change nothing about the rules on steps."""
    _, replayed = judged("cpu-toy")
    live = Checklist(CONFIG, gpu_total_gb=139.8, host_total_gb=1000.0, clock=True)
    changes, now = [], 0.0
    for step, data in records("cpu-toy"):
        for _ in range(3):
            now += 1
            live.tick(now, gpu=(10.0, 100.0), host=(10.0, 100.0))
            live.log_line("INFO: nothing to see", int(now), step=step)
        changes += live.step(step, data, t=now)
    assert [change for change in changes if change.rule != "STALL-1"] == [
        change for change in replayed if change.rule != "STALL-1"
    ]


@pytest.mark.parametrize("name", ["learning", "grpo", "two-gpus", "resume", "cpu-toy", "kl-blowup"])
def test_logs_of_running_runs_hold_no_errors(name: str) -> None:
    assert log_flags(name)[0] == []


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("fail-oom", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 MiB."),
        ("fail-oom-log-prob", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 139.39 GiB."),
        ("fail-lora-critic", "AttributeError: 'Qwen2ForTokenClassification' object has no attribute"),
        ("fail-missing-parquet", "FileNotFoundError: Unable to find '/data/nope.parquet'"),
        ("fail-kv-cache", "RuntimeError: Engine core initialization failed."),
    ],
)
def test_a_run_that_died_shows_the_innermost_exception(name: str, message: str) -> None:
    changes, shown = log_flags(name)
    assert [change.after for change in changes] == [Level.WARN, Level.CRITICAL]
    assert shown.startswith(message)
    assert "RayTaskError" not in changes[1].message and "overrides" not in changes[0].message


def log_flags(name: str) -> tuple[list[LevelChange], str]:
    checklist = Checklist()
    changes: list[LevelChange] = []
    with gzip.open(LOGS / f"{name}.log.gz", "rt", errors="replace") as lines:
        for number, line in enumerate(lines, start=1):
            changes += checklist.log_line(line.rstrip("\n"), number)
    return changes, next(row.message for row in checklist.checks() if row.rule == "ERR-1")
