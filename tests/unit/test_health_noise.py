"""What the noise of steps hides: a KL that swings is no rise, and a reward that rises slowly does rise."""

import pytest

from launcher.health.checklist import Checklist
from launcher.health.signals import Reward
from launcher.record.levels import Level

KL, SCORE = "actor/reward_kl_penalty", "critic/score/mean"
SCORES = {"critic/score/max": 1.0, "critic/score/min": 0.0}


def worst(kls: list[float]) -> Level:
    """The highest level of KL-4 with a reward that stands still."""
    judge = Checklist({}, clock=False)
    steps = [SCORES | {KL: kl, SCORE: 0.5} for kl in kls]
    changes = [change for number, data in enumerate(steps, 1) for change in judge.step(number, data)]
    return max((change.after for change in changes if change.rule == "KL-4"), default=Level.OK)


def test_a_rise_of_the_kl_counts_beyond_twice_its_noise() -> None:
    swings = [0.1, 0.5, 0.1, 0.1, 0.5, 0.5] * 5
    assert worst(swings) < Level.WARN
    assert worst([0.1 + 0.02 * step for step in range(30)]) == Level.CRITICAL  # as far, without noise


@pytest.mark.parametrize(
    ("a_step", "rises"), [(0.004, True), (0.0, False), (-0.004, False)], ids=["slow rise", "level", "slow fall"]
)
def test_a_reward_that_rises_slowly_rises(a_step: float, rises: bool) -> None:
    reward, noise = Reward(), [0.0, 0.04, -0.04, 0.02, -0.02]
    for step in range(60):
        reward.update(step, 0.5 + a_step * step + noise[step % 5], 1.0, 0.0)
    assert reward.rises is rises


def test_a_slow_rise_ends_with_the_drop_of_the_reward() -> None:
    reward = Reward()
    for step in range(60):
        reward.update(step, 0.5 + 0.004 * step + 0.04 * (step % 2), 1.0, 0.0)
    assert reward.rises
    for step in range(60, 65):
        reward.update(step, 0.4, 1.0, 0.0)
    assert not reward.rises
