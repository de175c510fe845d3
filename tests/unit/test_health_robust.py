"""Nothing breaks the checklist: wild figures, wild logs, a rule with a bug; replayed is as live."""

import gc
import math
import sys
from collections.abc import Mapping
from types import FunctionType, ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rule_levels import row

from launcher.health import keys
from launcher.health.catalogue import RuleData
from launcher.health.checklist import Checklist
from launcher.health.frame import Frame
from launcher.health.rules.kl import KlBlowUp
from launcher.health.state import Reading, State
from launcher.record.levels import Level

HEALTHY = {"actor/pg_loss": 0.01, "actor/reward_kl_penalty": 0.01}


def test_a_rule_that_throws_never_hides_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def judge(self: KlBlowUp, frame: Frame) -> Reading:
        raise ZeroDivisionError("float division by zero")

    monkeypatch.setattr(KlBlowUp, "judge", judge)
    checklist = Checklist()
    first = checklist.step(1, {**HEALTHY, "actor/pg_loss": math.nan})
    assert [change.message for change in first if change.rule == "KL-1"] == [
        "rule failed: ZeroDivisionError: float division by zero"
    ]
    assert row(checklist, "NUM-1").level == Level.CRITICAL
    assert not [change for change in checklist.step(2, HEALTHY) if change.rule == "KL-1"]
    assert row(checklist, "KL-1").level == Level.N_A


@pytest.mark.parametrize("bad", [1, 2])
def test_a_rule_whose_text_throws_never_hides_the_others(bad: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text of a row is made when its level changes, as in step 1, or when the row is read."""

    def throw(reading: Reading) -> str:
        raise ZeroDivisionError("float division by zero")

    def judge(self: KlBlowUp, frame: Frame) -> Reading:
        return self.compare(throw if frame.step == bad else "", lambda limits: [])

    monkeypatch.setattr(KlBlowUp, "judge", judge)
    checklist = Checklist()
    checklist.step(1, HEALTHY)
    checklist.step(2, HEALTHY)
    assert row(checklist, "KL-1").message == "rule failed: ZeroDivisionError: float division by zero"
    assert row(checklist, "NUM-1").level == Level.OK
    assert [str(error) for error in checklist.take_errors()] == ["float division by zero"]


KEYS = [
    *(name for group in vars(keys).values() if isinstance(group, tuple) for name in group if isinstance(name, str)),
    *(name for group in keys.GPU_MEMORY for name in group),
    "val-core/gsm8k/acc/mean@1",
    "val/test_score/gsm8k",
    "timing/gen",
]
WILD = st.one_of(
    st.floats(),
    st.floats(-2, 2),
    st.sampled_from([0.0, -0.0, 1.0, 1e300, -1e300, sys.float_info.min, math.nan, math.inf, -math.inf]),
)
STEPS = st.lists(st.dictionaries(st.sampled_from(KEYS), WILD, max_size=12), max_size=60)
CONFIGS = st.sampled_from(
    [
        {},
        {"algorithm.adv_estimator": "gae", "algorithm.use_kl_in_reward": True},
        {"actor_rollout_ref.actor.loss_agg_mode": "seq-mean-token-sum", "data.max_response_length": 256},
        {"algorithm.kl_ctrl.type": "adaptive", "algorithm.adv_estimator": "grpo", "trainer.total_training_steps": 9},
        {"algorithm.use_kl_in_reward": "maybe", "data.max_response_length": "x", "trainer.test_freq": None},
    ]
)


@pytest.mark.nightly("launcher/health/")
@pytest.mark.slow
@settings(max_examples=150)
@given(steps=STEPS, config=CONFIGS, three_decimals=st.booleans(), repeat=st.integers(1, 4))
def test_no_figures_make_a_rule_fail(
    steps: list[dict[str, float]], config: Mapping[str, object], three_decimals: bool, repeat: int
) -> None:
    checklist = Checklist(config, gpu_total_gb=80.0, host_total_gb=0.0)
    number = 0
    for data in steps:
        for _ in range(repeat):  # long enough to get past the warm-up
            number += 1
            checklist.step(number, data, t=float(number), three_decimals=three_decimals)
            checklist.tick(number + 0.5, gpu=(1.0, 0.0), host=None)
            checklist.checks()  # makes the texts
    checks = checklist.checks()
    assert not [found.message for found in checks if found.message.startswith("rule failed")]
    assert all(math.isfinite(bound.value) for found in checks for bound in found.bounds)


@settings(max_examples=100)
@given(text=st.text(max_size=300))
def test_no_line_of_a_log_makes_a_rule_fail(text: str) -> None:
    checklist = Checklist()
    checklist.log_line(text, 1)
    assert not row(checklist, "ERR-1").message.startswith("rule failed")


@given(st.lists(st.sampled_from([Level.OK, Level.NOTICE, Level.WARN, Level.CRITICAL]), max_size=40))
def test_the_state_machine_rises_and_releases_as_the_specification_says(raws: list[Level]) -> None:
    """The figures of the specification, written down again in the plainest way."""
    state, expected, changes = State(), Level.OK, list[int]()
    raised_at = 0
    for step, raw in enumerate(raws):
        state.push(step, Reading(raw, ""))
        needed = 5 * max(sum(step - change < 30 for change in changes), 1)
        window, holds = raws[max(0, step - 2) : step + 1], raws[max(raised_at + 1, step - needed + 1) : step + 1]
        flags = (Level.NOTICE, Level.WARN, Level.CRITICAL)
        up = max((flag for flag in flags if sum(r >= flag for r in window) >= 2), default=Level.OK)
        before = expected
        if up > expected:
            expected, raised_at = up, step
        elif len(holds) == needed and max(holds) < expected:
            expected = max(holds)
        changes = [*changes, step][-3:] if expected != before else changes
        assert state.level == expected


def reachable(root: object) -> int:
    """The number of objects that only this one holds on to; code and the data of the rules are shared."""
    seen, todo = set[int](), [root]
    while todo:
        each = todo.pop()
        if id(each) in seen or isinstance(each, type | ModuleType | str | RuleData):
            continue
        seen.add(id(each))
        todo.extend(each.__closure__ or () if isinstance(each, FunctionType) else gc.get_referents(each))
    return len(seen)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_run() -> None:
    checklist = Checklist(gpu_total_gb=80.0)
    sizes = []
    for step in range(1, 901):
        figures = {key: 0.5 + 0.01 * math.sin(step + place) for place, key in enumerate(KEYS)}
        checklist.step(step, figures, t=float(step))
        if step in (300, 900):
            sizes.append(reachable(checklist))
    assert sizes[1] <= 1.02 * sizes[0]
