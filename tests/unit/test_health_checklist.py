"""The checklist as a whole: its rows with their limits and fixes, and the verdict."""

import math
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from launcher.core.errors import UserError
from launcher.health.catalogue import families
from launcher.health.checklist import Checklist
from launcher.health.rules import ALL
from launcher.health.verdict import sort
from launcher.record.check import Check
from launcher.record.events import LevelChange
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


def row(checklist: Checklist, rule: str) -> Check:
    return next(found for found in checklist.checks() if found.rule == rule)


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


# Words of the contract


def test_levels_are_written_as_people_say_them() -> None:
    assert [str(level) for level in Level] == ["N-A", "WARM", "OK", "NOTICE", "WARN", "CRITICAL"]


def test_a_change_as_json() -> None:
    change = LevelChange(12, "KL-1", Level.OK, Level.WARN, "KL 1.2 vs usual 0.1")
    assert change.to_json() == {
        "step": 12,
        "rule": "KL-1",
        "from": "OK",
        "to": "WARN",
        "message": "KL 1.2 vs usual 0.1",
    }
    assert change.notable
    assert not LevelChange(1, "KL-1", Level.WARM, Level.OK, "").notable


def test_a_row_tells_when_its_flag_came_and_went() -> None:
    checklist = Checklist()
    for step, kl in enumerate([0.1] * 10 + [1.6] * 3, start=101):
        checklist.step(step, {KL: kl})
    on = row(checklist, "KL-1")
    assert (on.level, on.since, on.cleared, on.was) == (Level.CRITICAL, 112, None, None)
    assert on.message == "KL 1.60 vs usual 0.100"
    for step in range(114, 120):
        checklist.step(step, {KL: 0.1})
    off = row(checklist, "KL-1")
    assert (off.level, off.since, off.cleared, off.was) == (Level.OK, None, 118, Level.CRITICAL)
    assert off.to_json()["was"] == "CRITICAL"


def test_rows_put_the_worst_first_and_roots_before_symptoms() -> None:
    checklist = Checklist({"actor_rollout_ref.actor.policy_loss.loss_mode": "vanilla"})
    for step in range(1, 16):
        checklist.step(step, healthy(step))
    for step in range(16, 19):
        data = {**healthy(step), "actor/ppo_kl": 0.5, KL: 5.0, "actor/pg_clipfrac": 0.5}
        data |= {"response/aborted_ratio": 0.03} if step > 16 else {}
        checklist.step(step, data)
    on = [(found.rule, str(found.level)) for found in checklist.checks() if found.level > Level.OK]
    assert on == [("KL-2", "WARN"), ("KL-1", "WARN"), ("CLIP-1", "WARN"), ("KL-4", "WARN"), ("ABORT-1", "NOTICE")]
    levels = [found.level for found in checklist.checks()]
    assert levels == sorted(levels, reverse=True)


def test_the_verdict_grows_out_of_warming_up() -> None:
    checklist = Checklist(CONFIG)
    for step in range(1, 20):
        checklist.step(step, healthy(step))
    assert checklist.verdict == Level.WARM
    assert sentence(checklist).startswith("warming up — ")
    assert sentence(checklist, "stopping").startswith("warming up — ")
    assert sentence(checklist, "stopped").startswith("too short — ")
    checklist.step(20, healthy(20))
    assert checklist.verdict == Level.OK
    count = {level: sum(found.level == level for found in checklist.checks()) for level in Level}
    judged = len(ALL) - count[Level.N_A] - count[Level.WARM]
    assert sentence(checklist) == (
        f"OK — {judged} of 49 rules judged, {count[Level.N_A]} not judged, {count[Level.WARM]} warming up"
    )


def test_the_verdict_at_the_end() -> None:
    checklist = Checklist(CONFIG)
    checklist.step(1, {**healthy(1), "rollout_corr/kl": math.nan})
    assert sentence(checklist, "running").startswith("WARN — ")
    assert sentence(checklist, "finished").startswith("finished: WARN — ")
    assert sentence(checklist, "failed").startswith("failed: WARN — ")
    checklist.ended(1)
    assert sentence(checklist).startswith("failed: ")
    checklist.step(2, {**healthy(2), "actor/pg_loss": math.nan})
    checklist.ended(0)
    assert sentence(checklist).startswith("finished: CRITICAL — ")


def test_a_missing_metric_is_named_and_judged_when_it_comes() -> None:
    checklist = Checklist()
    checklist.step(1, {"critic/vf_loss": 0.1})
    assert row(checklist, "KL-2").message == "actor/ppo_kl is not logged"
    changes = checklist.step(2, {"actor/ppo_kl": 0.001})
    assert ("KL-2", Level.N_A, Level.OK) in [(change.rule, change.before, change.after) for change in changes]


# Limits, metrics and fixes


def texts(check: Check) -> list[str]:
    return [fix.text for fix in check.fixes]


def test_a_row_has_its_limits_and_fixes_that_fit_the_run() -> None:
    checklist = Checklist(CONFIG)
    for step in range(1, 9):
        checklist.step(step, healthy(step))
    found = row(checklist, "KL-1")
    assert texts(found)[0] == "lower actor_rollout_ref.actor.optim.lr"
    assert texts(found)[-1] == "raise algorithm.kl_ctrl.kl_coef, which helps with slow drift, not with a sudden jump"
    assert [fix.key for fix in found.fixes][::2] == ["actor_rollout_ref.actor.optim.lr", "algorithm.kl_ctrl.kl_coef"]
    assert found.keys == (KL,)
    assert [(str(bound.level), bound.side) for bound in found.bounds] == [("WARN", ">")]  # CRITICAL only with harm
    assert found.bounds[0].value == pytest.approx(
        3 * 0.002 + 0.05
    )  # at first the usual is that of the first three steps


def test_advice_without_a_key_says_so() -> None:
    assert [fix.key for fix in row(Checklist(), "ERR-1").fixes] == [None]


def test_fixes_follow_the_logged_keys_when_the_configuration_is_not_known() -> None:
    checklist = Checklist()
    checklist.step(1, {"actor/kl_loss": 0.01})
    fixes = texts(row(checklist, "KL-1"))
    assert any(fix.startswith("raise actor_rollout_ref.actor.kl_loss_coef") for fix in fixes)
    assert not any("kl_ctrl" in fix for fix in fixes)
    assert not any("critic" in fix for fix in texts(row(checklist, "MEM-1")))


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


# The rows are kept until something is judged


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
    def made(rule: str, level: Level = Level.OK, cleared: int | None = None, since: int | None = None) -> Check:
        return Check(rule, level=level, since=since, cleared=cleared)

    rows = [
        made("NUM-1"),
        made("LR-1"),
        made("ENT-1"),
        made("KL-1"),
        made("KL-4"),
        made("MIS-1", cleared=30),
        made("GRAD-1", cleared=50),
        made("THR-1", Level.NOTICE, since=9),
        made("KL-2", Level.WARM),
    ]
    order = ["THR-1", "GRAD-1", "MIS-1", "KL-4", "KL-1", "ENT-1", "NUM-1", "LR-1", "KL-2"]
    assert [found.rule for found in sort(rows)] == order
