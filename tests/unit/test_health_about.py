"""Which rules are about a metric, and which limits hold for a whole run."""

from collections.abc import Mapping

import pytest

from launcher.errors import UserError
from launcher.health.about import lasting_bounds, rules_about


def said(key: str, **more: Mapping[str, object]) -> list[str]:
    return [f"{bound.level} {bound.side} {bound.value:g}" for bound in lasting_bounds(**more).get(key, [])]


def test_fixed_limits_are_those_of_the_rules() -> None:
    assert said("actor/reward_kl_penalty") == [
        "NOTICE < -0.02",
        "WARN < -0.05",
        "NOTICE >= 0.5",
        "WARN >= 1",
        "CRITICAL >= 3",
    ]
    assert said("actor/pg_clipfrac") == ["NOTICE >= 0.05", "WARN >= 0.1", "CRITICAL >= 0.3"]
    assert said("actor/entropy") == ["NOTICE < 0.045"]


@pytest.mark.parametrize("key", ["critic/score/mean", "actor/grad_norm", "response_length/mean", "mine"])
def test_limits_that_depend_on_the_run_are_not_lasting(key: str) -> None:
    assert said(key) == []


def test_the_settings_of_the_run_count() -> None:
    assert said("actor/pg_clipfrac", settings={"CLIP-1": {"warn": 0.2}})[1] == "WARN >= 0.2"
    assert said("actor/pg_clipfrac", settings={"CLIP-1": {"enabled": False}}) == []
    with pytest.raises(UserError):
        lasting_bounds(settings={"CLIP-9": {"warn": 0.2}})


def test_the_configuration_of_the_run_counts() -> None:
    summed = {"actor_rollout_ref.actor.loss_agg_mode": "seq-mean-token-sum"}
    assert said("actor/entropy", config=summed) == []
    adaptive = {
        "algorithm.use_kl_in_reward": True,
        "algorithm.kl_ctrl.type": "adaptive",
        "algorithm.kl_ctrl.target_kl": 0.1,
    }
    assert "WARN >= 0.3" in said("actor/reward_kl_penalty", config=adaptive)


def test_rules_about_a_metric() -> None:
    assert "ENT-1" in rules_about("actor/entropy") and "KL-4" in rules_about("critic/kl")
    assert rules_about("mine") == frozenset()
