"""What the noise of steps hides: what swings has not fallen or risen, and what lasts counts though it is small."""

import random

import pytest
from rule_levels import levels, of, score

from launcher.health.checklist import Checklist
from launcher.health.signals import Reward
from launcher.record.levels import Level

KL, SCORE = "actor/reward_kl_penalty", "critic/score/mean"
SCORES = {"critic/score/max": 1.0, "critic/score/min": 0.0}


def worst(kls: list[float], reward: float = 0.5) -> Level:
    """The highest level of KL-4 with a reward that stands still."""
    judge = Checklist({}, clock=False)
    steps = [SCORES | {KL: kl, SCORE: reward} for kl in kls]
    changes = [change for number, data in enumerate(steps, 1) for change in judge.step(number, data)]
    return max((change.after for change in changes if change.rule == "KL-4"), default=Level.OK)


def test_a_rise_of_the_kl_counts_beyond_twice_its_noise() -> None:
    swings = [0.1, 0.5, 0.1, 0.1, 0.5, 0.5] * 5
    assert worst(swings) < Level.WARN
    rising = [0.1 + 0.02 * step for step in range(30)]  # as far, without noise
    assert worst(rising) == Level.WARN
    assert worst(rising, reward=0.98) == Level.NOTICE  # there is no more to gain


@pytest.mark.parametrize(
    ("a_step", "rises"), [(0.004, True), (0.0, False), (-0.004, False)], ids=["slow rise", "level", "slow fall"]
)
def test_a_reward_that_rises_slowly_rises(a_step: float, rises: bool) -> None:
    reward, noise = Reward(), [0.0, 0.04, -0.04, 0.02, -0.02]
    for step in range(60):
        reward.update(step, 0.5 + a_step * step + noise[step % 5], 1.0, 0.0)
    assert reward.rises is rises


@pytest.mark.parametrize(
    ("last", "rises"), [([0.61, 0.61, 0.42, 0.64, 0.5], True), ([0.61, 0.61, 0.38, 0.64, 0.5], False)]
)
def test_a_young_reward_rises_when_its_last_scores_are_all_above_the_first_ones(last: list[float], rises: bool) -> None:
    """The shipped toy's first nine steps, by whose noise the rise is none."""
    reward = Reward()
    for step, each in enumerate([0.36, 0.39, 0.36, 0.33, *last]):
        reward.update(step, each, 1.0, 0.0)
    assert reward.rises is rises


def test_a_slow_rise_ends_with_the_drop_of_the_reward() -> None:
    reward = Reward()
    for step in range(60):
        reward.update(step, 0.5 + 0.004 * step + 0.04 * (step % 2), 1.0, 0.0)
    assert reward.rises
    for step in range(60, 65):
        reward.update(step, 0.4, 1.0, 0.0)
    assert not reward.rises


ENDS = {"critic/score/max": 1.0, "critic/score/min": -1.0}
SWINGS = [0.2, 0.35, 0.15, 0.5, 0.25, 0.12, 0.4, 0.3]  # the entropy of two to four prompts a step


def test_an_entropy_that_swings_is_no_collapse_and_no_rise() -> None:
    swinging = of("actor/entropy", [*SWINGS * 3, 0.14, 0.12, 0.15, *SWINGS, 0.9, 0.8, *SWINGS])
    assert max(levels("ENT-1", swinging)) < Level.WARN
    assert max(levels("ENT-2", swinging)) < Level.WARN


def test_the_same_entropies_without_the_swings_are_a_collapse_and_a_rise() -> None:
    assert max(levels("ENT-1", of("actor/entropy", [*[0.3] * 24, 0.14, 0.12, 0.15]))) == Level.WARN
    assert max(levels("ENT-2", of("actor/entropy", [*[0.3] * 24, 0.9, 0.8]))) == Level.WARN


def test_a_gradient_is_compared_with_those_of_steps_that_teach() -> None:
    silent = {"actor/grad_norm": 0.02, "critic/score/max": 0.0, "critic/score/min": 0.0}
    telling = {"actor/grad_norm": 12.0, "critic/score/max": 1.0, "critic/score/min": 0.0}
    assert max(levels("GRAD-1", [*[silent] * 15, telling, telling, silent])) < Level.WARN
    assert max(levels("GRAD-1", [telling] * 12 + [telling | {"actor/grad_norm": 300.0}] * 3)) == Level.WARN


@pytest.mark.parametrize(("every", "worst_of"), [(2, Level.OK), (30, Level.WARN)], ids=["half are flat", "none is"])
def test_equal_rewards_in_a_row_count_by_how_common_they_are(every: int, worst_of: Level) -> None:
    """With two prompts a step, steps without a signal are common, and three in a row are chance."""
    flat, telling = ({"critic/score/max": high, "critic/score/min": 0.0} for high in (0.0, 1.0))
    steps = [flat if step % every == 0 else telling for step in range(1, 30)]
    assert max(levels("SIG-1", [*steps, flat, flat, flat])[-3:]) == worst_of
    assert levels("SIG-1", [*steps, *[flat] * 25])[-1] == Level.CRITICAL


def test_a_single_lucky_step_is_no_reward_to_lose() -> None:
    sparse = score([0.0] * 9 + [1.2] + [0.0] * 9 + [1.3] + [0.0] * 15, high=10, low=-0.1)
    assert max(levels("REW-1", sparse)) < Level.WARN


def test_a_loss_that_lasts_counts_though_single_steps_swing_as_far() -> None:
    chance = random.Random(7)
    found = levels("REW-1", score([chance.gauss(mean, 0.07) for mean in [0.42] * 60 + [0.12] * 45], low=-0.5))
    assert max(found[:60]) == Level.OK
    assert max(found[60:75]) == Level.WARN
    assert found[-1] == Level.CRITICAL  # for twenty steps no sign of a recovery


def test_a_reward_that_leaps_is_no_loss_though_ten_steps_are_below_it() -> None:
    leap = [0.15] * 8 + [0.16, 0.18, 0.24, 0.25, *[0.25] * 10]
    assert max(levels("REW-1", score(leap, high=0.25, low=0.15))) == Level.OK


def test_a_negative_reward_at_its_floor_stays_flagged() -> None:
    """No response scores below -1, and at the floor all scores are equal: the range is that of the steps before."""
    alive = [{"critic/score/mean": -0.7 + 0.02 * (step % 3), **ENDS} for step in range(15)]
    dead = {"critic/score/mean": -1.0, "critic/score/max": -1.0, "critic/score/min": -1.0}
    found = levels("REW-1", [*alive, *[dead] * 60])
    assert set(found[found.index(Level.CRITICAL) :]) == {Level.CRITICAL}


@pytest.mark.parametrize(
    ("a_step", "gain", "worst_of"),
    [(1.022, 0.3, Level.NOTICE), (1.022, 0.0, Level.WARN), (1.022, -0.3, Level.WARN), (1.03, 0.3, Level.WARN)],
    ids=["pays", "level", "costs", "pays, more than four times as long"],
)
def test_responses_that_grow_slowly_are_let_alone_while_the_reward_is_higher(
    a_step: float, gain: float, worst_of: Level
) -> None:
    steps = [
        {"response_length/mean": 500 * a_step**step, "critic/score/mean": 0.4 + gain * step / 70 + 0.02 * (step % 3)}
        | SCORES
        for step in range(70)
    ]
    assert max(levels("LEN-1", steps)) == worst_of


def test_a_kl_near_zero_has_no_ratio_and_hides_no_jump() -> None:
    """Estimates of it may be negative, and the noise of their logarithm once was that of the smallest number."""
    near_zero = [0.0003, -0.0002, 0.0001, 0.0, -0.0004] * 6
    found = levels("KL-1", of(KL, [*near_zero, 0.3, 0.35, 0.4]))
    assert max(found[:30]) <= Level.OK and found[-1] >= Level.WARN


@pytest.mark.parametrize(("prompts", "level"), [(8, Level.NOTICE), (256, Level.WARN)])
def test_a_share_has_at_least_the_noise_of_its_sample(prompts: int, level: Level) -> None:
    """With eight prompts in a batch, two of them that are cut are a NOTICE at most."""
    config = {"data.max_response_length": 8, "data.train_batch_size": prompts}
    shares = [0.0] * 20 + [0.28, 0.25, 0.0, 0.0]
    steps = [{"response_length/clip_ratio": share, "response_length/max": 8.0} for share in shares]
    assert max(levels("TRUNC-1", steps, config)) == level


def test_a_drift_after_a_hundred_steps_that_paid_is_a_notice_while_the_reward_holds() -> None:
    noise = [0.0, 0.06, -0.06, 0.04, -0.04]
    scores = [0.2 + 0.004 * n + noise[n % 5] for n in range(100)] + [0.6 + noise[n % 5] for n in range(20)]
    kls = [0.1] * 100 + [0.1 + 0.02 * n for n in range(20)]
    steps = [SCORES | {SCORE: score, KL: kl} for score, kl in zip(scores, kls, strict=True)]
    assert max(levels("KL-4", steps)) == Level.NOTICE
    falling = [*steps[:100], *(step | {SCORE: step[SCORE] - 0.008 * n} for n, step in enumerate(steps[100:]))]
    assert max(levels("KL-4", falling)) >= Level.WARN


def test_a_metric_that_gets_worse_at_each_step_rises_with_a_fixed_limit_without_waiting() -> None:
    rewarded = [SCORES | {SCORE: 0.3 + 0.02 * n} for n in range(30)]
    kls = [0.2] * 15 + [0.2 * 1.15**n for n in range(1, 16)]
    steps = [step | {KL: kl} for step, kl in zip(rewarded, kls, strict=True)]
    crossed = next(n for n, kl in enumerate(kls) if kl >= 1.0)
    assert levels("KL-1", steps)[crossed - 1 : crossed + 1] == [Level.NOTICE, Level.WARN]
    odd = [*steps[:15], steps[15] | {KL: 1.2}, *steps[10:15]]
    assert max(levels("KL-1", odd)) < Level.WARN
