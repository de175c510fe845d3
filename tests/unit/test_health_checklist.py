"""The checklist as a whole: its rows with their limits and fixes, and the verdict."""

import math
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rule_levels import row

from launcher.core.errors import UserError
from launcher.health.catalogue import families
from launcher.health.checklist import Checklist
from launcher.health.rules import ALL
from launcher.health.verdict import sort
from launcher.record.check import Check
from launcher.record.levels import Level
from launcher.runs.watch.check_words import sentence

KL = "actor/reward_kl_penalty"
CONFIG = {
    "algorithm.adv_estimator": "gae",
    "algorithm.use_kl_in_reward": True,
    "algorithm.kl_ctrl.kl_coef": 0.001,
    "actor_rollout_ref.actor.use_kl_loss": False,
    "actor_rollout_ref.actor.optim.lr": 1e-6,
}


def healthy(step: int) -> dict[str, float]:
    return {
        "actor/pg_loss": 0.01,
        KL: 0.001 * step,
        "actor/entropy": 0.5,
        "actor/grad_norm": 0.6,
        "actor/lr": 1e-6,
        "critic/score/mean": 0.3 + 0.001 * step,
        "critic/score/max": 1.0,
        "critic/score/min": 0.0,
        "critic/vf_loss": 0.1,
        "response_length/mean": 100.0,
        "timing_s/step": 10.0,
    }


def test_a_row_has_the_steps_of_its_flag() -> None:
    checklist = Checklist()
    for step, kl in enumerate([0.1] * 10 + [1.6] * 3 + [0.1] * 6, start=101):
        checklist.step(step, {KL: kl})
        if step == 113:
            on = row(checklist, "KL-1")
    off = row(checklist, "KL-1")
    assert (on.level, on.since, on.cleared, on.was) == (Level.CRITICAL, 112, None, None)
    assert (off.level, off.since, off.cleared, off.was) == (Level.OK, None, 118, Level.CRITICAL)


def test_the_verdict_grows_out_of_warming_up() -> None:
    checklist = Checklist(CONFIG)
    for step in range(1, 20):
        checklist.step(step, healthy(step))
    assert checklist.verdict == Level.WARM
    heads = [sentence(checklist, *state).partition(" —")[0] for state in ([], ["stopping"], ["stopped"])]
    assert heads == ["warming up", "warming up", "too short"]
    checklist.step(20, healthy(20))
    count = Counter(check.level for check in checklist.checks())
    judged = len(ALL) - count[Level.N_A] - count[Level.WARM]
    assert checklist.verdict == Level.OK and sentence(checklist).startswith(f"OK — {judged} of {len(ALL)} rules judged")
    assert sentence(checklist).endswith(f"{count[Level.N_A]} not judged, {count[Level.WARM]} warming up")


def test_the_verdict_at_the_end() -> None:
    checklist = Checklist(CONFIG)
    checklist.step(1, {**healthy(1), "rollout_corr/kl": math.nan})
    heads = [sentence(checklist, state).partition(" —")[0] for state in ("running", "finished", "failed")]
    assert heads == ["WARN", "finished: WARN", "failed: WARN"]
    checklist.ended(1)
    assert sentence(checklist).startswith("failed: ")
    checklist.step(2, {**healthy(2), "actor/pg_loss": math.nan})
    checklist.ended(0)
    assert sentence(checklist).startswith("finished: CRITICAL — ")


@pytest.mark.parametrize(
    ("config", "logged", "rule", "keys"),
    [
        (CONFIG, KL, "KL-1", ["actor_rollout_ref.actor.optim.lr", "algorithm.kl_ctrl.kl_coef"]),
        ({}, "actor/kl_loss", "KL-1", ["actor_rollout_ref.actor.optim.lr", "actor_rollout_ref.actor.kl_loss_coef"]),
        ({}, "actor/kl_loss", "ERR-1", []),
    ],
)
def test_fixes_follow_the_configuration_and_where_it_is_unknown_the_logged_keys(
    config: dict[str, object], logged: str, rule: str, keys: list[str]
) -> None:
    checklist = Checklist(config)
    checklist.step(1, {logged: 0.01})
    fixes = row(checklist, rule).fixes
    assert [fix.key for fix in fixes if fix.key and fix.key.endswith(("optim.lr", "coef"))] == keys
    assert not any("critic" in fix.text for fix in row(checklist, "MEM-1").fixes) or config


def test_every_row_is_explained_at_any_time() -> None:
    checklist = Checklist(gpu_total_gb=80, host_total_gb=100)
    for step in range(60):
        found = checklist.checks()
        assert {check.rule for check in found} == {rule.id for rule in ALL}
        for check in found:
            assert check.fixes and families()[check.family].meaning
            assert all(math.isfinite(bound.value) for bound in check.bounds)
            assert all(bound.series < len(check.keys) for bound in check.bounds)
        checklist.step(step, healthy(step))


def test_a_mute_of_an_unknown_rule_is_a_users_mistake() -> None:
    with pytest.raises(UserError, match="did you mean 'KL-1'"):
        Checklist().mute("KL1")
    with pytest.raises(UserError):
        Checklist().mute("KL-9")


Act = Callable[[Checklist], object]
ERROR = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 MiB."
ACTS: dict[str, Act] = {
    "step": lambda checklist: checklist.step(7, healthy(7), t=70.0),
    "log line": lambda checklist: checklist.log_line(ERROR, 9),
    "tick": lambda checklist: checklist.tick(1e6, host=(99.0, 100.0)),
    "mute": lambda checklist: checklist.mute("KL-1"),
}


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
def test_whatever_is_judged_is_in_the_rows_at_once(act: Act) -> None:
    checklist = Checklist(host_total_gb=100)
    checklist.tick(0.0)
    for step in range(1, 7):
        checklist.step(step, healthy(step), t=10.0 * step)
    before = checklist.checks()
    act(checklist)
    assert checklist.checks() != before


KINDS = st.sampled_from(["step", "validation", "log line", "tick", "mute", "unmute", "ended"])
FIGURES = st.sampled_from([0.0, 0.5, 50.0, math.nan])


def perform(checklist: Checklist, kind: str, value: float, number: int) -> None:
    match kind:
        case "step":
            checklist.step(number, {**healthy(number), KL: value, "actor/entropy": value}, t=10.0 * number)
        case "validation":
            checklist.step(number, {"val-core/x/acc/mean@1": value}, t=10.0 * number)
        case "log line":
            checklist.log_line(ERROR, number)
        case "tick":
            checklist.tick(1000.0 * number, gpu=(99.0, 100.0), host=(50.0, 100.0))
        case "mute" | "unmute":
            checklist.mute("KL-1", kind == "mute")
        case "ended":
            checklist.ended(1)


@pytest.mark.nightly("launcher/health/")
@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(KINDS, FIGURES), max_size=12))
def test_rows_that_were_asked_for_all_along_are_those_of_a_checklist_asked_once(acts: list[tuple[str, float]]) -> None:
    asked = Checklist(gpu_total_gb=80, host_total_gb=100)
    for end in range(len(acts) + 1):
        if end:
            perform(asked, *acts[end - 1], end)
        once = Checklist(gpu_total_gb=80, host_total_gb=100)
        for number, (kind, value) in enumerate(acts[:end], start=1):
            perform(once, kind, value, number)
        assert (asked.verdict, sentence(asked), asked.checks()) == (once.verdict, sentence(once), once.checks())


def test_among_quiet_rows_those_that_tell_most_come_first() -> None:
    quiet = [Check(rule, level=Level.OK) for rule in ("NUM-1", "LR-1", "ENT-1", "KL-1", "KL-4")]
    gone = [Check("MIS-1", level=Level.OK, cleared=30), Check("GRAD-1", level=Level.OK, cleared=50)]
    rows = [*quiet, *gone, Check("THR-1", level=Level.NOTICE, since=9), Check("KL-2", level=Level.WARM)]
    order = ["THR-1", "GRAD-1", "MIS-1", "KL-4", "KL-1", "ENT-1", "NUM-1", "LR-1", "KL-2"]
    assert [found.rule for found in sort(rows)] == order
