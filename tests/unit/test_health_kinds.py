"""Kinds of faults that show in the settings, the prompts and the critic rather than in the reward."""

import pytest
from rule_levels import levels, of, row, score

from launcher.health.checklist import Checklist
from launcher.record.levels import Level

ROLLOUT, OPTIM = "actor_rollout_ref.rollout", "actor_rollout_ref.actor.optim"
PROMPTS = {"data.max_prompt_length": 64}


def prompts(least: float, most: float, cut: float = 0.0) -> dict[str, float]:
    return {"prompt_length/min": least, "prompt_length/max": most, "prompt_length/clip_ratio": cut}


@pytest.mark.parametrize(
    ("keys", "level"),
    [
        ({"top_p": 1.0, "top_k": -1}, Level.OK),
        ({"top_p": 0.9}, Level.NOTICE),
        ({"top_p": 0.3}, Level.WARN),
        ({"top_k": 50}, Level.NOTICE),
        ({"top_k": 5, "top_p": 1.0}, Level.WARN),
    ],
)
def test_sampling_that_leaves_out_tokens_is_flagged(keys: dict[str, float], level: Level) -> None:
    config = {f"{ROLLOUT}.{name}": value for name, value in keys.items()}
    assert levels("MIS-3", [{}] * 3, config)[-1] == level
    assert levels("MIS-3", [{}] * 3)[-1] == Level.N_A


def test_a_weight_decay_that_shrinks_the_weights_is_flagged() -> None:
    rates = of("actor/lr", [3e-4] * 5)
    assert levels("DECAY-1", rates, {f"{OPTIM}.weight_decay": 0.01})[-1] == Level.OK
    assert levels("DECAY-1", rates, {f"{OPTIM}.weight_decay": 1000})[-1] == Level.WARN


def test_clipped_value_updates_are_flagged() -> None:
    assert levels("CLIP-2", of("critic/vf_clipfrac", [0.01] * 20))[-1] == Level.OK
    assert levels("CLIP-2", of("critic/vf_clipfrac", [0.01] * 10 + [0.9] * 8))[-1] == Level.WARN


def test_a_critic_that_explains_nothing_for_long_is_noticed_while_rewards_differ() -> None:
    idle = [step | {"critic/vf_explained_var": 0.01} for step in score([0.4] * 120)]
    assert levels("CRIT-2", idle)[-1] == Level.NOTICE
    assert levels("CRIT-2", idle[:90])[-1] == Level.OK
    equal = [step | {"critic/score/max": 0.0, "critic/score/min": 0.0} for step in idle]
    assert levels("CRIT-2", equal)[-1] <= Level.OK


def test_prompts_that_are_cut_or_of_one_length_are_flagged() -> None:
    varied = [prompts(20, 40)] * 10
    assert levels("INPUT-1", varied, PROMPTS)[-1] == Level.OK
    assert levels("INPUT-1", [prompts(21, 21)] * 30, PROMPTS)[-1] == Level.OK  # as the data of the toy
    assert levels("INPUT-1", varied + [prompts(21, 21)] * 8, PROMPTS)[-1] == Level.NOTICE
    assert levels("INPUT-1", varied + [prompts(30, 64, 0.8)] * 3, PROMPTS)[-1] == Level.WARN


def test_groups_that_are_all_wrong_are_a_lost_signal() -> None:
    wrong = {"responses/unvaried_groups": 0.95, "responses/all_wrong_groups": 0.95, "responses/all_right_groups": 0.0}
    right = wrong | {"responses/all_wrong_groups": 0.0, "responses/all_right_groups": 0.95}
    assert levels("GROUP-1", [wrong] * 8)[-1] == Level.WARN
    assert levels("GROUP-1", [right] * 8)[-1] == Level.NOTICE


def test_truncation_is_forecast_before_it_does_harm() -> None:
    growing = [{"response_length/clip_ratio": 0.02 + 0.02 * n, "response_length/max": 256.0} for n in range(20)]
    judge, said = Checklist({"data.max_response_length": 256}, clock=False), list[tuple[Level, str]]()
    for number, step in enumerate(growing, 1):
        judge.step(number, {"actor/pg_loss": 0.01} | step)
        said.append((row(judge, "TRUNC-1").level, row(judge, "TRUNC-1").message))
    first = next(each for each in said if "at this rate" in each[1])
    assert first[0] == Level.NOTICE
    assert first[1].startswith("at this rate half of the responses are cut in ")


@pytest.mark.parametrize(
    ("last", "gain", "level"),
    [(0.45, 0.04, Level.NOTICE), (0.45, 0.0, Level.WARN), (0.7, 0.04, Level.WARN), (0.97, 0.04, Level.CRITICAL)],
    ids=["below half, it pays", "below half, it does not", "most of them", "nearly all of them"],
)
def test_longer_responses_may_be_what_pays(last: float, gain: float, level: Level) -> None:
    """Until nearly all are cut."""
    limit = {"response_length/max": 256.0, "critic/score/max": 1.0, "critic/score/min": 0.0}
    steps = [
        limit | {"response_length/clip_ratio": max(0.05, last * n / 19), "critic/score/mean": 0.1 + gain * n}
        for n in range(20)
    ]
    assert levels("TRUNC-1", steps, {"data.max_response_length": 256})[-1] == level


def test_the_kl_begins_with_the_first_update_of_the_policy() -> None:
    alone = [{"actor/reward_kl_penalty": 0.0} for _ in range(8)]
    learned = [{"actor/reward_kl_penalty": kl} for kl in (0.002, 0.01, 0.03, 0.05, 0.07, 0.08)]
    assert max(levels("KL-1", alone + learned, {})) == Level.WARN
    assert max(levels("KL-1", alone + learned, {"trainer.critic_warmup": 8})) <= Level.OK


def test_an_error_after_the_last_step_is_none_of_training() -> None:
    killed = "RuntimeError: DataLoader worker (pid 4711) is killed by signal: Terminated."
    for config, last in (({"trainer.total_training_steps": 3}, ""), ({}, "Final validation metrics: {'acc': 0.5}")):
        judge = Checklist(config, clock=False)
        for step in range(1, 4):
            judge.step(step, {"actor/pg_loss": 0.01})
        judge.log_line(last, 10)
        judge.log_line("Traceback (most recent call last):", 11)
        judge.log_line(killed, 12)
        assert row(judge, "ERR-1").level <= Level.OK
    judge = Checklist({"trainer.total_training_steps": 9}, clock=False)
    judge.step(3, {"actor/pg_loss": 0.01})
    judge.log_line("Traceback (most recent call last):", 11)
    assert row(judge, "ERR-1").level == Level.WARN


def test_only_the_growth_of_the_runs_own_host_memory_counts() -> None:
    others = [{"actor/perf/cpu_memory_used_gb": 50.0 + n} for n in range(60)]
    assert levels("MEM-2", others, host_total_gb=256.0)[-1] == Level.OK
    own = [step | {"machine/run_memory_gb": 20.0 + n} for n, step in enumerate(others)]
    assert levels("MEM-2", own, host_total_gb=256.0)[-1] >= Level.NOTICE
