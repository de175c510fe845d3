"""Traps in veRL's figures of what a run is for: reward, validation, length."""

from collections.abc import Mapping

import pytest
from rule_levels import BASE, levels, of, row, score

from launcher.health.checklist import Checklist
from launcher.record.levels import Level

GAE = {"algorithm.adv_estimator": "gae"}

# Reward


def test_a_falling_reward() -> None:
    found = levels("REW-1", score([0.6] * 20 + [0.1] * 5))
    assert found[8:20] == [Level.WARM] + [Level.OK] * 11
    assert found[-1] == Level.CRITICAL


def test_a_reward_that_stands_still_is_noticed_unless_it_is_at_the_top() -> None:
    assert levels("REW-2", score([0.5] * 125))[-1] == Level.NOTICE
    assert levels("REW-2", score([0.97] * 125))[-1] == Level.OK


def test_a_leap_of_the_reward() -> None:
    assert levels("REW-4", score([0.2] * 12 + [0.9] * 3))[-1] == Level.NOTICE


def test_advantages_that_are_all_equal_teach_nothing() -> None:
    steps = [
        {**data, "critic/advantages/max": size, "critic/advantages/min": -size}
        for data, size in zip(score([0.5] * 16), [1.0] * 12 + [0.0] * 4, strict=True)
    ]
    checklist = Checklist(clock=False)
    for number, data in enumerate(steps, start=1):
        checklist.step(number, {**BASE, **data})
    found = row(checklist, "SIG-1")
    assert found.level == Level.WARN
    assert found.message == "all advantages are 0 (equal rewards within each group) for 4 steps"


@pytest.mark.parametrize(
    ("gamma", "right", "wrong", "level"),
    [
        (0.01, 4, 4, Level.WARN),
        (0.99, 300, 300, Level.WARN),
        (0.99, 100, 100, Level.NOTICE),
        (0.9995, 300, 300, Level.OK),
        (0.9995, 20, 400, Level.OK),  # right responses are short: a token's mean return is 5 % of the score anyway
    ],
)
def test_discounting_that_hides_the_reward(gamma: float, right: int, wrong: int, level: Level) -> None:
    """Half of the responses are right; their tokens have gamma^k of the reward, as veRL computes it."""
    returns = sum(gamma**k for k in range(right)) / (right + wrong)
    step = {"critic/score/mean": 0.5, "critic/returns/mean": returns, "response_length/mean": (right + wrong) / 2}
    assert levels("DISC-1", [step] * 6, {**GAE, "algorithm.gamma": gamma})[-1] == level


def test_returns_are_compared_only_where_they_tell_of_discounting() -> None:
    def last(config: Mapping[str, object], **means: float) -> Level:
        step = {f"critic/{name}/mean": x for name, x in means.items()} | {"response_length/mean": 200.0}
        return levels("DISC-1", [step] * 6, config)[-1]

    discounted = {**GAE, "algorithm.gamma": 0.9}
    assert last(discounted, score=0.5, returns=0.02) == Level.WARN
    assert last(discounted, score=0.0, returns=0.0) == Level.N_A
    assert last(discounted, score=0.2, rewards=-0.1, returns=0.02) == Level.N_A  # a KL penalty above the score
    assert last(discounted, score=0.5, rewards=0.1, returns=0.3) == Level.OK  # in part summed up behind a token
    assert last({**GAE, "algorithm.gamma": 1.0}, score=0.5, returns=0.02) == Level.N_A
    assert last(GAE, score=0.5, returns=0.02) == Level.N_A
    grpo = {"algorithm.adv_estimator": "grpo", "algorithm.gamma": 0.9}
    assert last(grpo, score=0.5, returns=0.0) == Level.N_A


def test_a_solved_task_is_never_critical() -> None:
    solved = levels("SIG-1", score([0.5] * 12) + score([1.0] * 40, 1.0, 1.0))
    assert max(solved) == Level.WARN
    assert solved[20] == Level.NOTICE


def test_signal_on_two_steps_of_ten_is_too_little() -> None:
    steps = [*score([0] * 8, 0, 0), *score([0.1]), *score([0], 0, 0), *score([0.1])]
    assert levels("SIG-1", steps)[-1] == Level.WARN


def test_reward_and_length_that_leap_together() -> None:
    steps = [
        {**data, "response_length/mean": length}
        for data, length in zip(score([0.5] * 14 + [0.9] * 5), [100] * 14 + [320] * 5, strict=True)
    ]
    assert levels("HACK-1", steps)[-1] == Level.CRITICAL


def test_training_reward_that_rises_while_validation_falls() -> None:
    checklist = Checklist(clock=False)
    for n in range(1, 81):
        data = {**score([0.3 + 0.007 * n])[0], "response_length/mean": 100.0}
        if n % 10 == 0:
            data["val-core/gsm8k/acc/mean@1"] = 0.6 if n <= 20 else 0.6 - 0.01 * (n - 20)
        checklist.step(n, {**BASE, **data})
    found = row(checklist, "HACK-1")
    assert (found.level, found.message) == (Level.WARN, "training reward rises while validation falls")
    assert found.since == 51  # the best pair ends at 20, two validations before the pair of 40 and 50


# Validation


def test_a_validation_on_its_own_feeds_the_validation_rule_alone() -> None:
    checklist = Checklist(clock=False)
    changes = checklist.step(0, {"val-core/gsm8k/acc/mean@1": 0.2, "val-aux/gsm8k/reward/mean@1": 0.1})
    assert [(change.rule, change.after) for change in changes] == [("VAL-1", Level.OK)]
    assert row(checklist, "NUM-1").level == Level.WARM


def test_validation_is_the_mean_of_the_headline_scores() -> None:
    checklist = Checklist(clock=False)
    checklist.step(0, {"val-core/a/acc/mean@4": 0.2, "val-core/b/acc/mean@4": 0.4, "val-core/a/acc/best@4/mean": 0.9})
    assert row(checklist, "VAL-1").message == "validation 0.300, best 0.300 (step 0)"


@pytest.mark.parametrize("key", ["val/test_score/gsm8k", "test_score/gsm8k"])
def test_old_names_of_validation_scores(key: str) -> None:
    assert levels("VAL-1", of(key, [0.7, 0.7, 0.3, 0.3]))[-1] == Level.CRITICAL


def test_a_run_that_never_validates() -> None:
    config = {"trainer.test_freq": -1, "trainer.val_before_train": False}
    assert row(Checklist(config), "VAL-1").level == Level.N_A
    assert row(Checklist({"trainer.test_freq": -1}), "VAL-1").level == Level.WARM


# Length


def test_the_v1_share_is_zero_below_the_limit_even_when_the_limit_is_not_known() -> None:
    """Shorter than an earlier answer is certainly not cut off."""
    steps = [
        {"response_length/max": longest, "response_length/clip_ratio": share}
        for longest, share in [(256, 0.01)] * 9 + [(180, 0.9)] * 4
    ]
    assert levels("TRUNC-1", steps)[-1] == Level.OK


def test_empty_answers() -> None:
    assert levels("ABORT-1", of("response/aborted_ratio", [0.6] * 2)) == [Level.OK, Level.CRITICAL]


def test_a_changed_regime_becomes_the_new_usual_after_sixty_refusals() -> None:
    found = levels("LEN-1", of("response_length/mean", [100] * 20 + [500] * 140))
    assert found[60] == Level.CRITICAL
    assert found[-1] == Level.OK


@pytest.mark.parametrize(
    ("length", "rewards", "last"),
    [
        (40, [0.1] * 12 + [0.6] * 6, Level.NOTICE),  # what the model learned is shorter
        (40, [0.1] * 18, Level.WARN),
        (260, [0.1] * 12 + [0.6] * 6, Level.WARN),  # longer may be what is rewarded
    ],
)
def test_shorter_responses_that_pay_are_only_noticed(length: int, rewards: list[float], last: Level) -> None:
    lengths = [100] * 12 + [length] * 6
    steps = [data | {"response_length/mean": float(n)} for data, n in zip(score(rewards), lengths, strict=True)]
    assert max(levels("LEN-1", steps)) == last


def test_responses_that_are_all_cut_off_from_the_start_are_told_with_five_steps() -> None:
    cut = [{"response_length/clip_ratio": 0.98, "response_length/max": 256.0}] * 8
    known = levels("TRUNC-1", cut, {"data.max_response_length": 256})
    assert known == [Level.WARM] * 4 + [Level.OK] + [Level.WARN] * 3
    assert levels("TRUNC-1", cut) == [Level.WARM] * 8  # perhaps the limit is far above 256
    assert levels("TRUNC-1", cut, {"data.max_response_length": 512}) == [Level.WARM] * 8


@pytest.mark.parametrize(
    ("reward", "audit", "worst"),
    [
        (0.4, 0.0, Level.NOTICE),
        (0.4, -0.2, Level.NOTICE),
        (0.4, 0.3, Level.OK),  # both rise
        (0.0, -0.2, Level.OK),  # REW-1's to say, if the reward fell as well
        (-0.3, -0.2, Level.OK),
    ],
)
def test_a_reward_that_rises_without_its_audit(reward: float, audit: float, worst: Level) -> None:
    wave = [0.0, 0.03, -0.03, 0.01, -0.01]
    steps = [
        score([0.5 + reward * step / 60 + wave[step % 5]])[0]
        | {"responses/audit": 0.4 + audit * step / 60 + wave[step % 4]}
        for step in range(60)
    ]
    found = levels("HACK-2", steps)
    assert (found[18], max(found)) == (Level.WARM, worst)
    assert levels("HACK-2", score([0.5] * 30))[-1] == Level.N_A
