"""The limits that a row shows are those that its level comes from."""

import gzip
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from rule_levels import row
from shown_limits import any_run, assert_implied

from launcher.health.checklist import Checklist
from launcher.health.clauses import Clause, Measure, bounds
from launcher.metrics.records import parse_record
from launcher.record.check import Bound, Check
from launcher.record.levels import Level
from launcher.runs.watch.check_words import bound_words, debounce_words, line_words

COSTLY = pytest.mark.nightly(
    "launcher/health/",
    "launcher/record/check.py",
    "launcher/runs/watch/check_words.py",
    "tests/support/shown_limits.py",
)
LOGS = Path(__file__).parents[1] / "data" / "logs"
RUNS = sorted(path.name.removesuffix(".jsonl.gz") for path in LOGS.glob("*.jsonl.gz"))
ADAPTIVE = {
    "data.max_response_length": 256,
    "actor_rollout_ref.actor.loss_agg_mode": "seq-mean-token-sum",
    "algorithm.use_kl_in_reward": True,
    "algorithm.kl_ctrl.type": "adaptive",
    "algorithm.kl_ctrl.target_kl": 0.01,
}
CONFIGS: list[Mapping[str, object]] = [{"data.max_response_length": 256}, ADAPTIVE]


def recorded(name: str) -> list[dict[str, float]]:
    with gzip.open(LOGS / f"{name}.jsonl.gz") as lines:
        return [record[1] for line in lines if (record := parse_record(line)) is not None]


@pytest.mark.slow
@COSTLY
@pytest.mark.parametrize("seed", range(30))  # bench/health_limits.py has 300
def test_on_any_metrics_the_shown_limits_imply_the_level(seed: int) -> None:
    assert_implied(*any_run(seed))


def test_a_fixed_limit_at_which_a_flag_rose_at_once_is_shown_beside_one_that_moves() -> None:
    kl = [0.15] * 20 + [0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 3.5, 3.6, 2.5, 0.9]
    checklist = Checklist(clock=False)
    for step, value in enumerate(kl[:27], start=1):
        checklist.step(step, {"actor/pg_loss": 0.1, "actor/kl_loss": value})
    last = row(checklist, "KL-1").bounds[-2:]
    assert [bound_words(each) for each in last] == ["CRITICAL > 1, clears ≤ 0.800", "CRITICAL ≥ 3, clears < 2.40"]
    assert assert_implied(Checklist(), [{"actor/pg_loss": 0.1, "actor/kl_loss": value} for value in kl])


def test_where_a_fixed_limit_lets_go_last_the_one_that_moves_may_still_raise_first() -> None:
    """Seed 138 of bench/health_limits.py."""
    fixed, moving = Measure(metric=("kl",), fixed=True), Measure(metric=("kl",))
    raising: list[Clause] = [(2.6, [(Level.WARN, ">=", 3.0)], fixed), (2.6, [(Level.WARN, ">", 2.5)], moving)]
    releasing: list[Clause] = [(2.6, [(Level.WARN, ">=", 2.4)], fixed), (2.6, [(Level.WARN, ">", 2.41)], moving)]
    assert list(map(bound_words, bounds(raising, releasing, Level.WARN, ["kl"]))) == ["WARN ≥ 2.50, clears < 2.40"]


@pytest.mark.slow
@COSTLY
@pytest.mark.parametrize("preset", ["default", "sensitive"])
@pytest.mark.parametrize("config", CONFIGS, ids=["plain", "adaptive"])
@pytest.mark.parametrize("run", RUNS)
def test_the_level_that_the_shown_limits_imply_is_the_level_of_the_rule(
    run: str, config: Mapping[str, object], preset: str
) -> None:
    """Small memories and long silences put the rules on that a healthy run leaves alone."""
    checklist = Checklist(config, {"preset": preset}, gpu_total_gb=30.0, host_total_gb=100.0)
    assert assert_implied(checklist, recorded(run))


def test_a_limit_that_cannot_be_reached_or_that_a_worse_one_covers_is_not_shown() -> None:
    ladder = [(Level.NOTICE, ">=", 0.5), (Level.WARN, ">=", 0.9), (Level.WARN, ">", 0.4), (Level.CRITICAL, ">", 1.0)]
    share = Measure(metric=("x",), span=(0.0, 1.0))
    assert bounds([(0.3, ladder, share)], [(0.3, ladder, share)], Level.OK, ["x"]) == (
        Bound(Level.WARN, ">", 0.4, now=0.3),
    )
    narrow = share._replace(span=(0.0, 0.3))
    on = bounds([(0.3, ladder, narrow)], [(0.3, ladder, share)], Level.WARN, ["x"])
    assert Bound(Level.WARN, ">", 0.4, now=0.3, holds=True, rises=0.4) in on


def test_a_limit_of_the_run_that_meets_a_fixed_one_is_shown_once() -> None:
    moving, fixed = Measure(metric=("kl",)), Measure(metric=("kl",), fixed=True)
    clauses: list[Clause] = [
        (0.3, [(Level.WARN, ">=", 1.0), (Level.CRITICAL, ">=", 10.0)], fixed),
        (0.3, [(Level.CRITICAL, ">", 1.0)], moving),
    ]
    shown = bounds(clauses, clauses, Level.OK, ["kl"])
    assert [(bound.level, bound.value) for bound in shown] == [(Level.CRITICAL, 1.0)]


def test_a_level_that_is_on_has_both_limits() -> None:
    checklist = Checklist({"actor_rollout_ref.actor.policy_loss.loss_mode": "vanilla"}, clock=False)
    for step in range(1, 5):
        checklist.step(step, {"actor/pg_loss": 0.1, "actor/pg_clipfrac": 0.07})
    check = row(checklist, "CLIP-1")
    assert [bound_words(bound) for bound in check.bounds] == [
        "NOTICE ≥ 0.050, clears < 0.040",
        "WARN ≥ 0.100",
        "CRITICAL ≥ 0.300",
    ]
    assert line_words(check.bounds[0]) == "NOTICE ≥ 0.050"
    assert [bound.crossed for bound in check.bounds] == [True, False, False]
    assert debounce_words(check) == "rises after 2 of 3 steps over a limit; clears after 5 below"


@pytest.mark.parametrize(
    ("sides", "words"),
    [
        ("<", "rises after 2 of 3 steps under a limit; clears after 5 above"),
        ("<>", "rises after 2 of 3 steps beyond a limit; clears after 5 within"),
        ("", "rises after 2 of 3 steps over a limit; clears after 5 below"),
    ],
)
def test_the_words_of_a_duration_follow_the_sides_of_the_limits(sides: str, words: str) -> None:
    assert debounce_words(Check("X", bounds=tuple(Bound(Level.WARN, side, 1.0) for side in sides))) == words


@pytest.mark.parametrize(
    ("side", "words"), [(">", "WARN > 2, clears ≤ 1"), (">=", "WARN ≥ 2, clears < 1"), ("<=", "WARN ≤ 2, clears > 1")]
)
def test_a_flag_clears_at_the_first_value_that_does_not_cross_its_limit(side: str, words: str) -> None:
    both = Bound(Level.WARN, side, 1.0, holds=True, rises=2.0)
    assert bound_words(both) == words
    assert bound_words(replace(both, value=2.0)) == words.partition(",")[0]
    assert bound_words(replace(both, rises=None)) == f"WARN {words.partition(', ')[2]}"  # as old records have it


def test_a_worse_level_that_keeps_a_flag_up_is_in_its_limit() -> None:
    """LEN-1 while the reward rises: its WARN limit is a NOTICE, and the CRITICAL limit alone keeps a WARN up."""
    raising, releasing = (
        [(0.9, [(Level.NOTICE, ">", 0.5), (Level.CRITICAL, ">", limit)], Measure())] for limit in (1.0, 0.8)
    )
    assert [bound_words(each) for each in bounds(raising, releasing, Level.WARN, [])] == [
        "NOTICE > 0.500",
        "WARN clears ≤ 0.800",
        "CRITICAL > 1",
    ]


def test_limits_that_do_not_move_with_the_run_are_marked() -> None:
    checklist = Checklist(clock=False)
    for step in range(1, 30):
        data = {"actor/reward_kl_penalty": 0.01, "actor/entropy": 0.5, "critic/score/mean": 0.3, "actor/grad_norm": 0.5}
        checklist.step(step, {"actor/pg_loss": 0.1, **data})
    fixed = {check.rule: [bound_words(b) for b in check.bounds if b.fixed] for check in checklist.checks()}
    assert fixed["KL-0"] == ["NOTICE < -0.020", "WARN < -0.050", "WARN > 30"]
    assert fixed["ENT-1"] == ["NOTICE < 0.045"]
    assert fixed["REW-1"] == [] and fixed["GRAD-1"] == ["WARN ≥ 1000", "WARN > 10k"]


def test_a_rule_that_judges_nothing_has_no_limits() -> None:
    checklist = Checklist(clock=False)
    assert not any(check.bounds for check in checklist.checks())
