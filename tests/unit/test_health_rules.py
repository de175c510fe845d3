"""Each health rule on the runs of tests/data/rules.toml, and what the rules have in common to judge them by."""

from pathlib import Path
from typing import Any

import golden
import pytest
import rule_runs

from launcher.health.catalogue import rules
from launcher.health.checklist import Checklist
from launcher.health.metric import Metric
from launcher.health.signals import Reward
from launcher.record.info import RunInfo
from launcher.record.levels import Level
from launcher.runs.judge.run_checklist import checklist_maker

ROWS, TEXTS = rule_runs.rows(), golden.stored()["rules"]


@pytest.mark.parametrize(("rule", "row"), ROWS, ids=[f"{rule} {row['why']}" for rule, row in ROWS])
def test_a_rule_has_these_levels_and_messages(rule: str, row: dict[str, Any]) -> None:
    levels, messages = rule_runs.judged(rule, row)
    assert levels == row["levels"]
    assert messages == TEXTS[f"{rule} {row['why']}"]


@pytest.mark.nightly("launcher/health/", "tests/data/rules.toml")
def test_a_drawn_limit_is_on_the_scale_of_its_curve() -> None:
    assert set().union(*(rule_runs.astray(*each) for each in ROWS)) == set()


def test_every_rule_has_a_row() -> None:
    assert {rule for rule, _ in ROWS} == rules().keys() - {"ERR-1", "STALL-1"}  # test_health_live.py has these


def test_a_validation_on_its_own_feeds_the_validation_rule_alone() -> None:
    changes = Checklist(clock=False).step(0, {"val-core/gsm8k/acc/mean@1": 0.2, "val-aux/gsm8k/reward/mean@1": 0.1})
    assert [(change.rule, change.after) for change in changes] == [("VAL-1", Level.OK)]


def test_memory_that_is_full_between_steps_is_worth_a_look() -> None:
    checklist = Checklist(gpu_total_gb=80.0)
    for number in range(1, 4):
        for second in range(40):
            checklist.tick(number * 40.0 + second, gpu=(79.0, 80.0), host=(10.0, 100.0))
        checklist.step(number, {"actor/perf/max_memory_reserved_gb": 60.0}, t=number * 40.0 + 40)
    assert next(check.level for check in checklist.checks() if check.rule == "MEM-1") == Level.NOTICE


@pytest.mark.parametrize(
    ("text", "level"), [('{"vocab_size": 20}', "WARN"), ('{"vocab_size": "x"}', "OK"), ("{", "OK")]
)
def test_the_vocabulary_is_read_from_the_model_where_it_is_at_hand(tmp_path: Path, text: str, level: str) -> None:
    (tmp_path / "config.json").write_text(text)
    checklist = checklist_maker(RunInfo(), {}, None)({"actor_rollout_ref.model.path": str(tmp_path)})
    for step in range(1, 9):
        checklist.step(step, {"actor/pg_loss": 0.1, "actor/entropy": 1.0 if step < 5 else 1.6})
    assert next(str(check.level) for check in checklist.checks() if check.rule == "ENT-2") == level


NOISE = [0.0, 0.04, -0.04, 0.02, -0.02] * 12


@pytest.mark.parametrize(
    ("scores", "rises"),
    [
        ([0.5 + 0.004 * n + x for n, x in enumerate(NOISE)], True),
        ([0.5 + x for x in NOISE], False),
        ([0.5 - 0.004 * n + x for n, x in enumerate(NOISE)], False),
        ([0.36, 0.39, 0.36, 0.33, 0.61, 0.61, 0.42, 0.64, 0.5], True),  # all above the first ones, noisy as they are
        ([0.36, 0.39, 0.36, 0.33, 0.61, 0.61, 0.38, 0.64, 0.5], False),
        ([0.5 + 0.004 * n + 0.04 * (n % 2) for n in range(60)], True),
        ([0.5 + 0.004 * n + 0.04 * (n % 2) for n in range(60)] + [0.4] * 5, False),
    ],
)
def test_a_reward_rises_beyond_its_noise(scores: list[float], rises: bool) -> None:
    reward = Reward()
    for step, score in enumerate(scores):
        reward.update(step, score, 1.0, 0.0)
    assert reward.rises is rises


def test_refused_values_move_no_reference_until_there_are_sixty() -> None:
    metric = Metric()
    for x in [1.0] * 30 + [9.0] * 60:
        metric.see(x)
        if x > 1:
            metric.refuse()
    assert (metric.usual, metric.start, metric.first) == (1.0, 1.0, 1.0)
    assert metric.reached(1.0) and not metric.reached(1.1)
    metric.see(9.0)
    assert metric.usual == 9.0
    for _ in range(121):
        metric.see(2.0)
    assert (metric.start, metric.ago, metric.low) == (1.0, 2.0, 2.0)
    assert metric.reached(2.0) and not metric.reached(2.1)


def test_the_model_is_meaningful_from_the_fifth_value_on() -> None:
    metric = Metric()
    for x in (0.5, 0.52, None, 0.48, 0.5, 0.51):
        metric.see(x)
    assert metric.count == 5 and metric.now == 0.51
    assert (metric.usual, metric.smooth, metric.start) == pytest.approx((0.5, 0.5, 0.5), abs=0.02)
    metric.see(0.5)
    assert 0 < metric.noise < 0.1
