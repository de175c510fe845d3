"""A solved step, whose responses all score the same, is no trouble of the critic or the gradient."""

from launcher.health.checklist import Checklist
from launcher.record.levels import Level

SOLVED = {"critic/score/mean": 1.0, "critic/score/max": 1.0, "critic/score/min": 1.0}
MIXED = {"critic/score/mean": 0.9, "critic/score/max": 1.0, "critic/score/min": 0.0}


def worst(rule: str, steps: list[dict[str, float]]) -> Level:
    """The highest level that a rule comes to."""
    judge = Checklist({}, clock=False)
    changes = [change for number, data in enumerate(steps, 1) for change in judge.step(number, data)]
    return max((change.after for change in changes if change.rule == rule), default=Level.OK)


def fitted(explained: float) -> dict[str, float]:
    return {"critic/vf_loss": 0.02, "critic/vf_explained_var": explained}


def test_explained_variance_of_equal_scores_does_not_count() -> None:
    usual, solved = [MIXED | fitted(0.3)] * 40, [SOLVED | fitted(-50.0), MIXED | fitted(0.3)]
    assert worst("CRIT-1", usual + [solved[0]] * 5 + solved * 5) == Level.OK
    assert worst("CRIT-1", usual + [MIXED | fitted(-50.0)] * 10) == Level.WARN


def test_an_explained_variance_near_zero_is_not_noticed() -> None:
    usual = [MIXED | fitted(0.3)] * 40
    assert worst("CRIT-1", usual + [MIXED | fitted(-0.04)] * 10) == Level.OK
    assert worst("CRIT-1", usual + [MIXED | fitted(-0.2)] * 10) == Level.NOTICE


def test_a_gradient_vanishes_only_where_there_is_an_advantage() -> None:
    usual = [MIXED | {"actor/grad_norm": 1.0}] * 20
    assert worst("GRAD-2", usual + [SOLVED | {"actor/grad_norm": 1e-6}] * 10) == Level.OK
    equal = {"critic/advantages/max": 0.0, "critic/advantages/min": 0.0}
    assert worst("GRAD-2", usual + [MIXED | equal | {"actor/grad_norm": 1e-6}] * 10) == Level.OK
    assert worst("GRAD-2", usual + [MIXED | {"actor/grad_norm": 1e-6}] * 10) == Level.CRITICAL


def test_rounding_is_no_scale_of_the_policy_loss() -> None:
    judge = Checklist({"actor_rollout_ref.actor.loss_agg_mode": "seq-mean-token-sum"}, clock=False)
    steps = [{"actor/pg_loss": 4e-9}] * 20 + [{"actor/pg_loss": -0.003}] * 5 + [{"actor/pg_loss": 0.1}] * 5
    loud = [
        change.step
        for number, data in enumerate(steps, 1)
        for change in judge.step(number, data)
        if change.rule == "LOSS-1" and change.rose
    ]
    assert loud
    assert min(loud) > 25


def test_a_kl_that_less_than_doubles_is_no_drift_of_its_own() -> None:
    def drift(start: float, rise: float) -> list[dict[str, float]]:
        kl = [start] * 10 + [start + rise * step / 10 for step in range(1, 11)] + [start + rise] * 5
        return [MIXED | {"actor/kl_loss": value} for value in kl]

    assert worst("KL-4", drift(0.4, 0.3)) == Level.OK
    assert worst("KL-4", drift(0.01, 0.3)) == Level.WARN


def test_a_reward_that_is_too_near_its_ceiling_to_gain_makes_a_drift_a_notice() -> None:
    """The demo at a reward of 0.93 to 0.98: KL +0.22 in 17 steps was CRITICAL."""
    scores = [0.93, 0.97, 0.94, 0.98, 0.93, 0.95, 0.96] * 5
    drift = [0.08] * 12 + [0.08 + 0.02 * step for step in range(1, 18)]
    solved = [MIXED | {"critic/score/mean": x, "actor/kl_loss": kl} for x, kl in zip(scores, drift, strict=False)]
    assert worst("KL-4", solved) == Level.NOTICE
    halfway = [step | {"critic/score/mean": step["critic/score/mean"] - 0.4} for step in solved]
    assert worst("KL-4", halfway) == Level.WARN
