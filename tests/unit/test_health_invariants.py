"""What must hold of all rules on any curve: generated ones, and the recorded runs of tests/data/logs."""

import gzip
import random
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from health_faults import FAULTS, Fault, Step
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tables import parts

from launcher.health.catalogue import rules
from launcher.health.checklist import Checklist
from launcher.metrics.records import parse_record
from launcher.record.levels import Level

LOGS = Path(__file__).parents[1] / "data" / "logs"
RUNS = ("learning", "grpo", "cpu-toy")
CONFIG = {"data.max_response_length": 256, "algorithm.adv_estimator": "gae"}
PERIOD = 20  # steps after which the noise of the generated run repeats
OF_THE_CLOCK = {"THR-1", "MEM-1", "MEM-2", "STALL-1"}
REWARDS = ("critic/score/", "critic/rewards/", "critic/returns/", "critic/values/", "val-core/")
COSTLY = pytest.mark.nightly(
    "launcher/health/", "launcher/record/levels", "bench/health_faults.py", "tests/data/tables/health_invariants.txt"
)
TABLES = parts("health_invariants")
HEALTHY: dict[str, tuple[float, float]] = {key: tuple(values) for key, values in TABLES["HEALTHY"][1]}
WORSE = TABLES["WORSE"][1]


@cache
def healthy(steps: int, seed: int = 0, noise: float = 1.0) -> tuple[Mapping[str, float], ...]:
    """A steady run whose noise repeats after PERIOD steps."""
    rng = random.Random(seed)
    cycle = [{key: rng.gauss(0, 1) for key in HEALTHY} for _ in range(PERIOD)]
    return tuple(
        {key: mean * (1 + noise * spread * cycle[n % PERIOD][key]) for key, (mean, spread) in HEALTHY.items()}
        for n in range(steps)
    )


@cache
def recorded(name: str) -> tuple[Mapping[str, float], ...]:
    """A recorded run; "slow" is a generated one, long enough for the rules that wait for a new best reward."""
    if name == "slow":
        return tuple(rewarded(step, 0.0015 * n) for n, step in enumerate(healthy(300, 5, noise=0.3)))
    with gzip.open(LOGS / f"{name}.jsonl.gz") as lines:
        records = [record for line in lines if (record := parse_record(line)) is not None]
    return tuple(data for step, data in records if step > 0)


def judged(
    steps: Sequence[Mapping[str, float]], only: Sequence[str] = (), config: Mapping[str, object] = CONFIG
) -> list[dict[str, Level]]:
    """The level of every rule, or only of some, after each step."""
    off = {rule: {"enabled": False} for rule in rules() if only and rule not in only}
    checklist, found = Checklist(config, off, clock=False), []
    levels = {check.rule: check.level for check in checklist.checks() if check.rule not in off}
    for number, data in enumerate(steps, start=1):
        levels |= {change.rule: change.after for change in checklist.step(number, data)}
        found.append({rule: level for rule, level in levels.items() if rule not in OF_THE_CLOCK})
    return found


def changed(steps: Sequence[Mapping[str, float]], scale: float = 1.0, offset: float = 0.0) -> list[dict[str, float]]:
    """The run with another scale of the reward, and a constant added to every reward and its bounds."""

    def reward(key: str, x: float) -> float:
        if key == "critic/vf_loss":
            return x * scale**2
        return x * scale + offset if key.startswith(REWARDS) and "num_" not in key else x

    return [{key: reward(key, x) for key, x in data.items()} for data in steps]


def rewarded(data: Mapping[str, float], gain: float) -> dict[str, float]:
    return {**data, "critic/score/mean": min(data["critic/score/mean"] + gain, 1.0)}


quick = settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)


@pytest.mark.parametrize(("metric", "factor", "affected"), WORSE, ids=lambda each: str(each))
@quick
@given(
    gain=st.sampled_from([-0.004, 0.0, 0.006, 0.02]),
    steps=st.sampled_from([8, 25, 90]),
    late=st.sampled_from([0.0, 0.3, 0.6]),
    seed=st.integers(0, 99),
)
def test_a_metric_that_keeps_getting_worse_never_lowers_its_level(
    metric: str, factor: float, affected: list[str], gain: float, steps: int, late: float, seed: int
) -> None:
    base = healthy(25 + 100, seed)
    run = [dict(step) for step in base]
    start = run[24][metric]
    for n in range(100):
        step = run[25 + n]
        if metric != "critic/score/mean":
            step.update(rewarded(step, gain * max(n - late * steps, 0.0)))
        step[metric] = start * factor ** min((n + 1) / steps, 1.0)
    found = judged(run[: 25 + steps], affected)
    for rule in affected:
        levels = [levels[rule] for levels in found[25:]]
        assert levels == sorted(levels)


@pytest.mark.parametrize("gain", [0.0, 0.03])
@pytest.mark.parametrize("name", ["learning", "cpu-toy", "kl-blowup"])
@pytest.mark.parametrize(("metric", "factor", "affected"), WORSE, ids=lambda each: str(each))
def test_a_metric_of_a_recorded_run_that_gets_worse_never_lowers_its_level(
    metric: str, factor: float, affected: list[str], name: str, gain: float
) -> None:
    run = [dict(step) for step in recorded(name)]
    at = len(run) // 3
    if metric == "actor/reward_kl_penalty" and name == "cpu-toy":
        metric = "actor/kl_loss"
    start = run[at][metric]
    for n, step in enumerate(run[at : at + 18], start=1):
        if metric != "critic/score/mean":  # the metric is bad before the reward rises
            step.update(rewarded(step, gain * max(n - 8, 0)))
        step[metric] = start * factor ** (n / 18)
        if metric.endswith("clip_ratio"):
            step[metric] = min(step[metric], 1.0)
    found = judged(run[: at + 18], affected)
    for rule in affected:
        levels = [levels[rule] for levels in found[at:]]
        assert levels == sorted(levels)


@pytest.mark.slow
@COSTLY
@pytest.mark.parametrize("name", [*RUNS, "slow"])
@pytest.mark.parametrize("scale", [1e-3, 30.0, 1000.0])
def test_the_scale_of_the_reward_changes_no_level(name: str, scale: float) -> None:
    assert judged(changed(recorded(name), scale=scale)) == judged(recorded(name))


@pytest.mark.slow
@COSTLY
@pytest.mark.parametrize("name", [*RUNS, "slow"])
@pytest.mark.parametrize("offset", [-3.0, 0.7, 40.0])
def test_a_constant_added_to_all_rewards_changes_no_level(name: str, offset: float) -> None:
    assert judged(changed(recorded(name), offset=offset)) == judged(recorded(name))


def faulty(steps: int, fault: Fault, seed: int) -> list[dict[str, Level]]:
    run: list[Step] = [dict(step) for step in healthy(steps + 30, seed)]
    start = {**run[steps - 1], "limit": 256.0}
    for n in range(30):
        fault.change(run[steps + n], n, start)
    return judged(run, fault.rules)[steps:]


def reached(levels: Sequence[Level], level: Level) -> int:
    """The first step at a level or above."""
    return next((n for n, each in enumerate(levels) if each >= level), len(levels))


JUDGED = [fault for fault in FAULTS if not OF_THE_CLOCK.intersection(fault.rules) and "VAL-1" not in fault.rules]


@pytest.mark.parametrize("fault", JUDGED, ids=lambda fault: fault.name)
@pytest.mark.parametrize("changes", [{"scale": 0.01}, {"scale": 50.0}, {"offset": -2.0}], ids=str)
def test_faults_are_found_on_any_scale_of_the_reward(fault: Fault, changes: dict[str, float]) -> None:
    run: list[Step] = [dict(step) for step in healthy(60, 1)]
    start = {**run[39], "limit": 256.0}
    for n in range(20):
        fault.change(run[40 + n], n, start)
    assert judged(changed(run, **changes), fault.rules) == judged(run, fault.rules)


@pytest.mark.parametrize("fault", JUDGED, ids=lambda fault: fault.name)
def test_more_than_twenty_healthy_steps_before_a_fault_change_nothing(fault: Fault) -> None:
    short = faulty(PERIOD, fault, 1)
    for cycles in (2, 3, 7):
        long = faulty(cycles * PERIOD, fault, 1)
        for rule in fault.rules:
            first, later = ([levels[rule] for levels in found] for found in (short, long))
            assert max(first) == max(later)
            for level in (Level.NOTICE, Level.WARN, Level.CRITICAL):
                assert abs(reached(first, level) - reached(later, level)) <= 1


@pytest.mark.parametrize(("metric", "factor", "affected"), WORSE, ids=lambda each: str(each))
def test_a_flag_seldom_changes_more_than_three_times_in_thirty_steps_of_noise(
    metric: str, factor: float, affected: list[str]
) -> None:
    """In one of 700 cases it does; the cases are the same in each run."""
    often = 0
    for case in range(40):
        rng = random.Random(case)
        run, level, noise = [dict(step) for step in healthy(90, case)], rng.uniform(0.05, 1), 0.05 + 0.1 * (case % 3)
        for step in run[25:]:
            step[metric] = HEALTHY[metric][0] * factor**level * max(1 + noise * rng.gauss(0, 1), 0.01)
            if metric.endswith("clip_ratio"):
                step[metric] = min(step[metric], 1.0)
        found = judged(run, affected)
        for rule in affected:
            changes = [before[rule] != after[rule] for before, after in pairwise(found[30:])]
            most = max(sum(changes[n : n + 30]) for n in range(len(changes)))
            often += most > 3
            assert most <= 5, (case, rule)
    assert often <= 1


def harm(step: dict[str, float], kind: str, n: int) -> None:
    """Adds the n-th step of some damage, on top of what is there."""
    if kind == "reward":
        step["critic/score/mean"] = min(max(0.4 - 0.05 * n, 0.02), step["critic/score/mean"])
    elif kind == "truncation":
        share = "response_length/clip_ratio"
        step[share] = max(min(0.05 + 0.1 * n, 1.0), step[share])
    else:
        step.update({"critic/score/max": 0.0, "critic/score/mean": 0.0})


OF_A_GAIN = {"HACK-1", "HACK-2", "REW-2", "REW-4"}  # they flag a reward that rises, which harm takes away


@pytest.mark.slow
@COSTLY
@pytest.mark.parametrize("kind", ["reward", "truncation", "signal"])
@pytest.mark.parametrize(("metric", "factor", "affected"), WORSE, ids=lambda each: str(each))
@pytest.mark.parametrize("gain", [0.0, 0.015])
def test_harm_removes_no_flag(kind: str, metric: str, factor: float, affected: list[str], gain: float) -> None:
    run = [dict(step) for step in healthy(70, 3)]
    for n in range(40):
        run[30 + n].update(rewarded(run[30 + n], gain * n))
        run[30 + n][metric] = run[29][metric] * factor ** min((n + 1) / 15, 1.0)
    harmed = [dict(step) for step in run]
    for n in range(25):
        harm(harmed[45 + n], kind, n)
    for before, after in zip(judged(run), judged(harmed), strict=True):
        for rule in set(before) - OF_A_GAIN:
            assert after[rule] >= before[rule], rule


@pytest.mark.slow
@COSTLY
@pytest.mark.parametrize("kind", ["reward", "truncation", "signal"])
@pytest.mark.parametrize("name", [*RUNS, "kl-blowup"])
@pytest.mark.parametrize("place", [0.25, 0.5])
def test_harm_removes_no_flag_of_a_recorded_run(place: float, name: str, kind: str) -> None:
    harmed = [dict(step) for step in recorded(name)]
    for n, step in enumerate(harmed[int(place * len(harmed)) :]):
        harm(step, kind, n)
    for before, after in zip(judged(recorded(name)), judged(harmed), strict=True):
        unjudged = OF_A_GAIN | {"GRAD-1"} if kind == "signal" else OF_A_GAIN  # no gradient without a signal
        flagged = {rule for rule, level in before.items() if level > Level.OK} - unjudged
        assert all(after[rule] >= before[rule] for rule in flagged)


@pytest.mark.slow
@COSTLY
@pytest.mark.parametrize("name", RUNS)
@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    metric=st.sampled_from(sorted(set(HEALTHY) - {"actor/lr"})),
    factor=st.sampled_from([0.0, 0.05, 0.3, 4.0, 20.0]),
    place=st.floats(0.5, 0.95),
)
def test_one_outlier_in_a_healthy_run_is_a_notice_at_most(name: str, metric: str, factor: float, place: float) -> None:
    steps = [dict(step) for step in recorded(name)]
    at = int(place * len(steps))
    if metric not in steps[at]:
        return
    top = steps[at]["critic/score/max"] if metric == "critic/score/mean" else 1.0
    steps[at][metric] = min(steps[at][metric] * factor, top if "score/mean" in metric or "ratio" in metric else 1e9)
    for before, after in zip(judged(recorded(name)), judged(steps), strict=True):
        for rule in before:
            assert after[rule] <= max(before[rule], Level.NOTICE), rule


@pytest.mark.slow
def test_faults_in_a_recorded_run_are_flagged() -> None:
    run, flagged = recorded("cpu-toy")[:95], 0
    start = {**run[34], "limit": 8.0}
    for fault in JUDGED:
        faulty: list[Step] = [dict(step) for step in run]
        try:
            for n, step in enumerate(faulty[35:]):
                fault.change(step, n, start)
        except KeyError:  # the run does not log the metric
            continue
        config = {"data.max_response_length": 8, "actor_rollout_ref.actor.policy_loss.loss_mode": "vanilla"}
        levels = judged(faulty, fault.rules, config)
        flagged += max(max(each.values()) for each in levels[35:]) >= Level.WARN
    assert flagged >= 26  # of 28


@pytest.mark.parametrize(
    ("name", "old"), [("KL jumps (×8 + 0.8)", "critic/kl"), ("entropy to 3 % in 5 steps", "actor/entropy_loss")]
)
def test_faults_change_the_metrics_of_an_old_verl_under_their_names(name: str, old: str) -> None:
    (fault,) = (each for each in FAULTS if each.name == name)
    step = {old: 0.5}
    fault.change(step, 0, {old: 0.5})
    assert set(step) == {old} and step[old] != 0.5
