"""The limits that a row shows are those that its level comes from."""

import gzip
import json
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rule_levels import row

from launcher.cli.report import health
from launcher.health.checklist import Checklist
from launcher.health.clauses import Clause, Measure, bounds, within
from launcher.health.rules import ALL
from launcher.health.state import Reading, State
from launcher.health.verdict import bound_words, debounce_words, limits_by_metric
from launcher.metrics.records import parse_record
from launcher.record.check import Bound, Check
from launcher.record.levels import Level
from launcher.runs.judge.run_checklist import judged
from launcher.runs.watch.source import resolve

LOGS = Path(__file__).parents[1] / "data" / "logs"
RUNS = sorted(path.name.removesuffix(".jsonl.gz") for path in LOGS.glob("*.jsonl.gz"))
ADAPTIVE = {
    "data.max_response_length": 256,
    "actor_rollout_ref.actor.loss_agg_mode": "seq-mean-token-sum",
    "algorithm.use_kl_in_reward": True,
    "algorithm.kl_ctrl.type": "adaptive",
    "algorithm.kl_ctrl.target_kl": 0.01,
}
ANY_MODE = {
    "trainer.v1.trainer_mode": "separate_async",
    "data.train_batch_size": 8,
    "actor_rollout_ref.rollout.multi_turn.tool_config_path": "tools.yaml",
}
CONFIGS: list[Mapping[str, object]] = [{"data.max_response_length": 256}, ADAPTIVE]


PUSH = State.push  # without the listener below


class Implied:
    """The level of one row by the limits it shows: raised as `debounce` says, held by its own limits."""

    def __init__(self, check: Check) -> None:
        self.state = State(*check.debounce)

    def follow(self, check: Check, worse: float) -> Level:
        crossed = max((bound.level for bound in check.bounds if bound.crossed), default=Level.OK)
        PUSH(self.state, 0, Reading(crossed, "", worse=worse))
        return self.state.level


@pytest.fixture
def judgements(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[State]]:
    """The states that took in a judgement since the list was last emptied."""
    pushed: list[State] = []
    listen(monkeypatch, pushed)
    yield pushed


def listen(patch: pytest.MonkeyPatch, pushed: list[State]) -> None:
    push = State.push

    def noted(self: State, step: int, reading: Reading) -> None:
        push(self, step, reading)
        if reading.raw >= Level.OK:
            pushed.append(self)

    patch.setattr(State, "push", noted)


def recorded(name: str) -> list[dict[str, float]]:
    with gzip.open(LOGS / f"{name}.jsonl.gz") as lines:
        return [record[1] for line in lines if (record := parse_record(line)) is not None]


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["default", "sensitive"])
@pytest.mark.parametrize("config", CONFIGS, ids=["plain", "adaptive"])
@pytest.mark.parametrize("run", RUNS)
def test_the_level_that_the_shown_limits_imply_is_the_level_of_the_rule(
    run: str, config: Mapping[str, object], preset: str, judgements: list[State]
) -> None:
    """Small memories and long silences put the rules on that a healthy run leaves alone."""
    checklist = Checklist(config, {"preset": preset}, gpu_total_gb=30.0, host_total_gb=100.0)
    assert assert_implied(checklist, recorded(run), judgements)


@pytest.mark.slow
@settings(max_examples=6)
@given(st.integers(0, 2**32))
def test_on_any_figures_the_shown_limits_imply_the_level(seed: int) -> None:
    """Every metric that a rule reads wanders, jumps, stays or is missing, each in its own way."""
    rng, config = random.Random(seed), {**ANY_MODE, "data.max_response_length": 256}
    names = sorted({key for kind in ALL for group in kind.needs + kind.also for key in group} - {"actor/lr(1e-4)"})
    names += ["response_length/max", "training/rollout_probs_diff_valid", "timing_s/testing"]
    worlds = {name: (10 ** rng.uniform(-4, 1), rng.uniform(0.8, 1.3), rng.random()) for name in names}
    steps = []
    for step in range(60):
        data = {
            name: size * trend**step * rng.lognormvariate(0, 0.5) * (50 if rng.random() < 0.02 else 1)
            for name, (size, trend, missing) in worlds.items()
            if rng.random() > 0.3 * missing
        }
        steps.append({**data, "actor/pg_loss": data.get("actor/pg_loss", 0.1)})
    states: list[State] = []
    with pytest.MonkeyPatch.context() as patch:
        listen(patch, states)
        assert_implied(Checklist(config, gpu_total_gb=30.0, host_total_gb=100.0), steps, states)


def assert_implied(checklist: Checklist, steps: Sequence[Mapping[str, float]], judgements: list[State]) -> int:
    """Feeds steps with silences between them; the number of flags that were up."""
    implied: dict[str, Implied] = {}
    now, flags = 0.0, 0
    for number, data in enumerate(steps, start=1):
        for act in range(3):
            judgements.clear()
            if act < 2:
                now += 10 if number % 9 else 700
                checklist.tick(now, gpu=(99.0, 100.0), host=(50.0, 100.0))
            else:
                checklist.step(number, data, t=now)
            states = {name: entry.state for name, entry in checklist._entries.items()}
            for check in checklist.checks():
                assert_ordered(check)
                if states[check.rule] not in judgements:
                    continue
                assert check.bounds or not rule_has_limits(states[check.rule])
                reading = states[check.rule].reading
                worse = reading.worse if reading else math.nan
                level = implied.setdefault(check.rule, Implied(check)).follow(check, worse)
                assert (number, check.rule, level) == (number, check.rule, check.level)
                flags += check.on
                for bound in check.bounds:
                    assert_true(bound, check, data if act == 2 else None)
    return flags


def rule_has_limits(state: State) -> bool:
    """Whether any limit of the last judgement can be reached."""
    reading = state.reading
    assert reading is not None
    return any(
        within(rung, *measure.span) and math.isfinite(rung[2])
        for _, rungs, measure in reading.raising
        for rung in rungs
    )


def assert_true(bound: Bound, check: Check, data: Mapping[str, float] | None) -> None:
    """A limit is marked as crossed when the figure that is shown is beyond it."""
    assert bound.holds == (bound.level <= check.level)
    if bound.metric:
        assert bound.crossed == (bound.now is not None and bound.on(bound.now))
    elif data is not None and math.isfinite(value := data.get(check.keys[bound.series], math.nan)):
        assert bound.crossed == bound.on(value)


def assert_ordered(check: Check) -> None:
    """Of one figure to one side the milder limit comes first and is crossed first."""
    for _, limits in limits_by_metric(check):
        for side in "<>":
            values = [bound.value for bound in limits if bound.side[0] == side]
            assert values == sorted(values, reverse=side == "<")
            levels = [bound.level for bound in limits if bound.side[0] == side]
            assert levels == sorted(set(levels))


@pytest.mark.parametrize("log", sorted(path.name for path in LOGS.glob("*.log.gz")))
def test_no_share_has_a_limit_above_one(log: str) -> None:
    """TRUNC-1 once said `CRITICAL > 1.33` beside a WARN at 99 %."""
    checklist = judged(resolve(str(LOGS / log)), []).checklist
    for rule in ("TRUNC-1", "CLIP-1", "ABORT-1"):
        assert all(0 <= bound.value <= 1 for bound in row(checklist, rule).bounds if "steps" not in bound.metric)


def test_a_limit_that_cannot_be_reached_or_that_a_worse_one_covers_is_not_shown() -> None:
    ladder = [(Level.NOTICE, ">=", 0.5), (Level.WARN, ">=", 0.9), (Level.WARN, ">", 0.4), (Level.CRITICAL, ">", 1.0)]
    share = Measure(metric=("x",), span=(0.0, 1.0))
    assert bounds([(0.3, ladder, share)], [(0.3, ladder, share)], Level.OK, ["x"]) == (Bound(Level.WARN, ">", 0.4),)
    narrow = share._replace(span=(0.0, 0.3))
    (crossed,) = bounds([(1.5, ladder, narrow)], [(0.3, ladder, share)], Level.WARN, ["x"])[-1:]
    assert crossed == Bound(Level.WARN, ">", 0.4, holds=True)


def test_a_limit_of_the_run_that_meets_a_fixed_one_is_shown_once() -> None:
    moving, fixed = Measure(metric=("kl",)), Measure(metric=("kl",), fixed=True)
    clauses: list[Clause] = [
        (0.3, [(Level.WARN, ">=", 1.0), (Level.CRITICAL, ">=", 10.0)], fixed),
        (0.3, [(Level.CRITICAL, ">", 1.0)], moving),
    ]
    shown = bounds(clauses, clauses, Level.OK, ["kl"])
    assert [(bound.level, bound.value) for bound in shown] == [(Level.CRITICAL, 1.0)]


def test_of_a_level_that_is_on_the_limit_is_the_one_for_letting_go() -> None:
    checklist = Checklist(clock=False)
    for step in range(1, 5):
        checklist.step(step, {"actor/pg_loss": 0.1, "actor/pg_clipfrac": 0.07})
    check = row(checklist, "CLIP-1")
    assert [bound_words(bound) for bound in check.bounds] == [
        "NOTICE clears < 0.040",
        "WARN ≥ 0.100",
        "CRITICAL ≥ 0.300",
    ]
    assert [bound.crossed for bound in check.bounds] == [True, False, False]
    assert debounce_words(check) == "raised if 2 of 3 steps are bad, cleared after 5 good steps"


def test_limits_that_do_not_move_with_the_run_are_marked() -> None:
    checklist = Checklist(clock=False)
    for step in range(1, 30):
        data = {"actor/reward_kl_penalty": 0.01, "actor/entropy": 0.5, "critic/score/mean": 0.3, "actor/grad_norm": 0.5}
        checklist.step(step, {"actor/pg_loss": 0.1, **data})
    fixed = {check.rule: [bound_words(b) for b in check.bounds if b.fixed] for check in checklist.checks()}
    assert fixed["KL-0"] == ["NOTICE < -0.020", "WARN < -0.050"]
    assert fixed["ENT-1"] == ["NOTICE < 0.045"]
    assert fixed["REW-1"] == fixed["GRAD-1"] == []


def test_a_command_prints_the_limits_of_what_is_on(capsys: pytest.CaptureFixture[str]) -> None:
    health(str(LOGS / "kl-blowup.log.gz"))
    told = capsys.readouterr().out
    assert "WARN        TRUNC-1  Truncated responses: 99.2 %" in told
    assert "lowest of 5 steps 0.977 (NOTICE clears < 0.150, WARN clears < 0.750)" in told
    health(str(LOGS / "kl-blowup.log.gz"), json=True)
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert {check["rule"] for check in last["checks"]} == set(last["rules"])


def test_a_rule_that_judges_nothing_has_no_limits() -> None:
    checklist = Checklist(clock=False)
    assert not any(check.bounds for check in checklist.checks())
