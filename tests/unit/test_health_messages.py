"""What a row says fits its level: nothing that is OK sounds like a complaint."""

import pytest

from launcher.health.checklist import Checklist
from launcher.record.levels import Level

Steps = list[dict[str, float]]
KL, SCORE = "actor/reward_kl_penalty", "critic/score/mean"
FLAT = {SCORE: 0.0, "critic/score/max": 0.0, "critic/score/min": 0.0}
CUT = {"response_length/clip_ratio": 0.7}


def of(key: str, *values: float) -> Steps:
    return [{key: value} for value in values]


def said(rule: str, steps: Steps) -> tuple[Level, str]:
    checklist = Checklist({"actor_rollout_ref.actor.policy_loss.loss_mode": "vanilla"}, clock=False)
    for number, data in enumerate(steps, start=1):
        checklist.step(number, {"actor/pg_loss": 0.01, **data})
    found = next(row for row in checklist.checks() if row.rule == rule)
    return found.level, found.message


@pytest.mark.parametrize(
    ("rule", "steps", "message"),
    [
        ("KL-0", of(KL, *[-4e-6] * 5), "mean KL of the last 5 steps is -4e-6"),
        ("KL-4", [{KL: 0.001 * i, SCORE: 0.1} for i in range(7)], "smoothed KL rose by only 0.003 in 6 steps"),
        ("KL-4", [{KL: 0.1 - 0.001 * i, SCORE: 0.1} for i in range(7)], "KL is not rising"),
        ("ENT-1", of("actor/entropy", *[11.753, 11.752] * 5), "entropy stays at 11.8, medians of 3"),
        (
            "ENT-1",
            of("actor/entropy", *[0.5] * 7, *[0.49] * 2),
            "entropy fell from 0.500 to 0.490 in 5 steps, medians of 3",
        ),
        (
            "VAL-1",
            of("val-core/a/acc/mean@4", 0.3, 0.6),  # two in a row count, and one may be above their mean
            "validation 0.600, above the best mean of two 0.450 (step 2)",
        ),
        ("REW-4", of(SCORE, *[0.0] * 10), "reward 0 vs usual 0, median of 3 steps"),
        (
            "HACK-1",
            [{SCORE: 0.2, "response_length/mean": 100.0 + 0.01 * i} for i in range(12)],
            "reward 0.200 vs usual 0.200 (median of 3) at 1.00× the usual length",
        ),
    ],
)
def test_what_is_ok_does_not_complain(rule: str, steps: Steps, message: str) -> None:
    level, text = said(rule, steps)
    assert level == Level.OK
    assert text == message


@pytest.mark.parametrize(
    ("rule", "steps", "message"),
    [
        ("MIS-1", of("rollout_corr/kl", 1.13), "rollout KL 1.13"),
        ("CLIP-1", of("actor/pg_clipfrac", 0.001, 0.3), "30 % of tokens clipped"),
        ("SIG-1", [FLAT] * 2, "all samples have the same reward (0) for 2 steps"),
        ("LR-1", of("actor/lr", 1e-6, 0.0), "learning rate is 0 for 1 step"),
        ("TRUNC-1", [CUT] * 9, "70 % of responses cut (usual 70 %)"),
        ("TRUNC-1", [{"response_length/clip_ratio": 0.2}] * 10 + [CUT], "70 % of responses"),
    ],
)
def test_what_would_be_flagged_if_it_lasted_says_so_until_it_is(rule: str, steps: Steps, message: str) -> None:
    level, text = said(rule, steps)
    assert level == Level.OK
    assert text.startswith(message) and text.endswith(", flagged if it persists")
    level, text = said(rule, steps + steps[-1:] * 5)
    assert level > Level.OK
    assert "if it lasts" not in text


def test_a_flag_names_what_is_wrong() -> None:
    assert said("KL-0", of(KL, *[-0.1] * 9))[1] == "mean KL of the last 5 steps is -0.100, below 0"
    drift = [{KL: 0.02 * i, SCORE: 0.15} for i in range(20)]
    assert said("KL-4", drift)[1].endswith(" steps while the smoothed reward changed by 0")


def test_one_step_is_no_plural() -> None:
    assert said("ENT-1", of("actor/entropy", 2.5, 2.4, 2.3, 2.2))[1].endswith("in 1 step, medians of 3")


@pytest.mark.parametrize(
    ("rule", "steps", "message"),
    [
        (
            "TRUNC-1",
            of("response_length/clip_ratio", *[0.05] * 10, *[0.9] * 4, 0.0625),
            "6.25 % of responses cut (usual 5 %)",
        ),
        ("CLIP-1", of("actor/pg_clipfrac", *[0.001] * 3, *[0.35] * 3, 0.04), "4 % of tokens clipped"),
        (
            "MIS-1",
            [{"rollout_corr/kl": kl, "rollout_corr/chi2_token": 0.1} for kl in (1.0, 1.0, 0.01)],
            "rollout KL 0.010",
        ),
    ],
)
def test_a_flag_that_falls_begins_so_and_says_the_value_of_its_step(rule: str, steps: Steps, message: str) -> None:
    level, text = said(rule, steps)
    assert level > Level.OK
    assert text.startswith(f"clearing: {message}")


def test_what_nobody_judged_at_this_step_names_the_step_of_its_number() -> None:
    steps = [{"actor/grad_norm": 1.5, "critic/score/max": 1.0, "critic/score/min": 0.0}] * 12
    level, text = said("GRAD-1", [*steps, {**FLAT, "actor/grad_norm": 0.0}])
    assert (level, text) == (Level.OK, "grad norm 1.50 vs usual 1.50, as of step 12")


def test_a_start_is_the_first_value_however_fast_the_entropy_falls() -> None:
    """The median of eight steps was 7.9e-4 where the run began at 2.39, and CRITICAL went while nothing was left."""
    steps = of("actor/entropy", 2.39, 1.2, 0.03, 0.002, 7.9e-4, 7.9e-4, 6e-4, 6e-4, 5e-4, 5e-4, *[0.0] * 8, 0.006, 0.0)
    levels = [said("ENT-1", steps[: count + 1]) for count in range(10, len(steps))]
    assert {level for level, _ in levels} == {Level.CRITICAL}
    assert levels[-1][1] == "smoothed entropy 0.003, start 2.39"


def test_a_rise_from_a_critic_alone_is_a_number() -> None:
    steps = [{KL: 0.001 * i, SCORE: 0.1} for i in range(16)]
    checklist = Checklist({"trainer.critic_warmup": 4}, clock=False)
    for number, data in enumerate(steps, start=1):
        checklist.step(number, {"actor/pg_loss": 0.01, **data})
    assert "nan" not in next(row.message for row in checklist.checks() if row.rule == "KL-4")
