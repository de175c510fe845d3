"""Traps in veRL's figures, and what each rule does beyond the golden examples."""

import math
from collections.abc import Iterable

import pytest
from rule_levels import TOKENS, levels, of, row, score

from launcher.health.checklist import Checklist
from launcher.record.levels import Level

# Numbers


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_only_training_keys_are_critical_when_they_are_not_finite(value: float) -> None:
    assert levels("NUM-1", of("critic/vf_loss", [value])) == [Level.CRITICAL]
    assert levels("NUM-1", of("rollout_corr/kl", [value])) == [Level.WARN]
    assert levels("NUM-1", of("val-core/gsm8k/acc/mean@1", [value])) == [Level.OK]
    assert levels("NUM-1", of("val-aux/num_turns/mean", [value])) == [Level.OK]


def test_a_second_bad_grad_norm_counts_only_within_ten_steps() -> None:
    late = of("actor/grad_norm", [math.nan] + [1.0] * 10 + [math.nan])
    assert levels("NUM-1", late)[-1] == Level.WARN
    soon = of("actor/grad_norm", [math.nan] + [1.0] * 9 + [math.nan])
    assert levels("NUM-1", soon)[-1] == Level.CRITICAL


def test_the_message_names_at_most_four_keys_training_first() -> None:
    checklist = Checklist(clock=False)
    checklist.step(7, {f"rollout_corr/{n}": math.nan for n in "abcde"} | {"actor/pg_loss": math.inf})
    assert row(checklist, "NUM-1").message == (
        "non-finite at step 7: actor/pg_loss, rollout_corr/a, rollout_corr/b, rollout_corr/c and 2 more"
    )


def test_invalid_differences_of_probabilities_are_no_figures() -> None:
    bad = {"training/rollout_probs_diff_valid": 0.0, "training/rollout_probs_diff_mean": 0.9}
    assert levels("MIS-1", [bad] * 3)[-1] < Level.OK
    assert levels("MIS-1", [{**bad, "training/rollout_probs_diff_valid": 1.0}] * 3)[-1] == Level.CRITICAL


def test_a_nan_neither_clears_nor_raises_the_other_rules() -> None:
    values = [0.1] * 10 + [1.6] * 2 + [math.nan] * 20
    found = levels("KL-1", of("actor/reward_kl_penalty", values))
    assert found[11:] == [Level.CRITICAL] * 21


# KL


def test_without_a_reference_the_checklist_says_how_to_get_one() -> None:
    config = {"algorithm.use_kl_in_reward": False, "actor_rollout_ref.actor.use_kl_loss": False}
    message = row(Checklist(config), "KL-4").message
    assert message == "no KL logged; set use_kl_loss or use_kl_in_reward"


@pytest.mark.parametrize("key", ["actor/reward_kl_penalty", "critic/kl", "actor/kl_loss"])
def test_kl_is_read_under_every_name_it_ever_had(key: str) -> None:
    assert levels("KL-1", of(key, [0.1] * 6 + [4.0] * 2))[-1] == Level.CRITICAL


def test_a_k1_estimate_may_dip_below_zero() -> None:
    assert levels("KL-0", of("actor/reward_kl_penalty", [-0.01, 0.005] * 5))[-1] == Level.OK
    assert levels("KL-0", of("actor/reward_kl_penalty", [-0.03] * 6))[-1] == Level.NOTICE
    assert levels("KL-0", of("actor/reward_kl_penalty", [-0.2] * 6))[-1] == Level.WARN


def test_one_minibatch_a_step_leaves_nothing_to_judge() -> None:
    found = levels("KL-2", of("actor/ppo_kl", [0.0] * 6 + [0.02] * 2))
    assert found == [Level.OK] * 4 + [Level.N_A] * 2 + [Level.OK, Level.WARN]


def test_a_printed_zero_does_not_prove_one_minibatch() -> None:
    assert levels("KL-2", of("actor/ppo_kl", [0.0] * 8), three_decimals=True) == [Level.OK] * 8


def test_a_printed_zero_kl_is_shown_as_what_it_is() -> None:
    checklist = Checklist(clock=False)
    checklist.step(1, {"actor/reward_kl_penalty": 0.0}, three_decimals=True)
    assert row(checklist, "KL-1").message == "KL < 0.0005"


def test_the_controller_is_judged_only_when_it_is_adaptive() -> None:
    adaptive = {"algorithm.kl_ctrl.type": "adaptive", "algorithm.kl_ctrl.target_kl": 0.1}
    steps = of("actor/reward_kl_penalty", [0.4] * 3)
    assert levels("KL-3", steps, adaptive) == [Level.OK, Level.WARN, Level.WARN]
    assert levels("KL-3", steps, {"algorithm.kl_ctrl.type": "fixed"})[-1] == Level.OK
    assert levels("KL-3", steps)[-1] == Level.OK


@pytest.mark.parametrize("mode", ["gspo", "cispo", "geo_mean"])
def test_losses_that_clip_by_design_are_not_judged(mode: str) -> None:
    steps = of("actor/pg_clipfrac", [0.4] * 3)
    config = {"actor_rollout_ref.actor.policy_loss.loss_mode": mode}
    assert levels("CLIP-1", steps, config)[-1] == Level.N_A


# Entropy


def test_absolute_entropy_limits_hold_for_token_means_only() -> None:
    steps = of("actor/entropy", [0.02] * 12)
    sums = {"actor_rollout_ref.actor.loss_agg_mode": "seq-mean-token-sum"}
    assert levels("ENT-1", steps)[-1] == Level.NOTICE
    assert levels("ENT-1", steps, sums)[-1] == Level.OK


def test_the_old_name_of_entropy_is_entropy() -> None:
    assert levels("ENT-1", of("actor/entropy_loss", [0.4] * 12 + [0.05] * 4))[-1] == Level.CRITICAL


def test_growing_entropy_is_noise() -> None:
    assert levels("ENT-2", of("actor/entropy", [0.4] * 11 + [2.5] * 2))[-1] == Level.CRITICAL


def test_little_entropy_without_progress_is_worth_a_look() -> None:
    steps = [{"actor/entropy": 0.4 if n < 20 else 0.01, "critic/score/mean": 0.5} for n in range(120)]
    found = levels("ENT-3", steps)
    assert found[48] == Level.WARM
    assert found[-1] == Level.NOTICE


# Critic and optimiser


def test_a_run_without_a_critic_has_no_critic_to_judge() -> None:
    assert row(Checklist({"algorithm.adv_estimator": "grpo"}), "CRIT-1").level == Level.N_A
    assert levels("CRIT-1", [{}] * 3)[-1] == Level.N_A  # nobody knows the configuration
    assert row(Checklist({"algorithm.adv_estimator": "gae"}), "CRIT-1").level == Level.WARM


def test_explained_variance_is_judged_late_because_a_critic_starts_out_bad() -> None:
    steps = [{"critic/vf_loss": 0.1, "critic/vf_explained_var": -20.0}] * 35
    found = levels("CRIT-1", steps)
    assert found[29] == Level.OK
    assert found[-1] == Level.CRITICAL


def test_a_critic_that_still_learns_may_explain_nothing_yet() -> None:
    """As on GPU runs whose rewards hardly vary: far below zero at step 31, and getting better."""
    falling = [{"critic/vf_loss": 0.2 * 0.98**i, "critic/vf_explained_var": -20.0} for i in range(60)]
    flat = [{**falling[-1]}] * 50
    found = levels("CRIT-1", falling + flat)
    assert found[59] == Level.NOTICE
    assert found[-1] == Level.CRITICAL


def test_a_critic_of_rewards_that_never_differ_has_nothing_to_explain() -> None:
    """As on a GPU with a model of random weights: SIG-1 says what is wrong, and the critic is not it."""
    critic = {"critic/vf_loss": 1e-3, "critic/vf_explained_var": -10.0}
    assert levels("CRIT-1", [critic | step for step in score([0.0] * 60, high=0.0)])[-1] == Level.OK
    assert levels("CRIT-1", [critic | step for step in score([0.1] * 60)])[-1] == Level.WARN


def test_gradients_above_the_clip_limit_are_normal() -> None:
    assert set(levels("GRAD-1", of("actor/grad_norm", [8.0] * 40))) == {Level.WARM, Level.OK}


def test_a_critics_gradient_never_stands_in_for_the_actors() -> None:
    """During critic_warmup only the critic's norm is logged, on another scale."""
    steps = of("critic/grad_norm", [900.0] * 12) + of("actor/grad_norm", [0.5] * 3)
    assert levels("GRAD-1", steps) == [Level.N_A] * 12 + [Level.WARM] * 2 + [Level.OK]


def test_vanished_gradients() -> None:
    usual = [step | {"actor/grad_norm": float(n < 10)} for n, step in enumerate(score([0.5] * 14))]
    assert levels("GRAD-2", usual)[-1] == Level.CRITICAL
    small = of("actor/grad_norm", [0.01] * 10 + [0.0] * 4)
    assert levels("GRAD-2", small, three_decimals=True)[-1] == Level.OK  # 0.000 may be 0.0004


def test_the_policy_loss_has_absolute_limits_for_token_means_only() -> None:
    sums = {"actor_rollout_ref.actor.loss_agg_mode": "seq-mean-token-sum"}
    steps = of("actor/pg_loss", [-12.0] * 14)
    assert levels("LOSS-1", steps)[-1] == Level.CRITICAL
    assert levels("LOSS-1", steps, sums)[-1] == Level.OK
    assert levels("LOSS-1", [*steps, *of("actor/pg_loss", [300.0] * 2)], sums)[-1] == Level.WARN


def test_the_learning_rate_may_be_zero_in_warm_up_and_at_the_end() -> None:
    zero = of("actor/lr", [0.0] * 8)
    config = {"trainer.total_training_steps": 10}
    assert levels("LR-1", zero, {"actor_rollout_ref.actor.optim.lr_warmup_steps": 8})[-1] == Level.OK
    ratio = {"actor_rollout_ref.actor.optim.lr_warmup_steps": -1, **config}
    assert levels("LR-1", zero, {**ratio, "actor_rollout_ref.actor.optim.lr_warmup_steps_ratio": 0.8})[-1] == Level.OK
    ending = of("actor/lr", [1e-6] * 8 + [0.0] * 2)
    assert levels("LR-1", ending, config)[-1] == Level.OK
    assert levels("LR-1", ending)[-1] == Level.WARN


def test_the_old_learning_rate_has_another_unit() -> None:
    checklist = Checklist(clock=False)
    checklist.step(1, {"actor/lr(1e-4)": 0.01})
    assert row(checklist, "LR-1").message == "learning rate 1e-6"


def test_staleness_and_mean_weights() -> None:
    stale = of("training/off_policy/trajectory_staleness/mean", [9.0] * 2)
    assert levels("STALE-1", stale)[-1] == Level.WARN
    assert levels("MIS-1", of("rollout_corr/rollout_is_mean", [0.4] * 2))[-1] == Level.WARN
    assert levels("MIS-1", of("rollout_corr/rollout_is_mean", [2.5] * 2))[-1] == Level.WARN


# System


def test_longer_answers_are_no_slow_down() -> None:
    steps = [{"timing_s/step": 60.0, "perf/total_num_tokens": TOKENS}] * 12
    longer = [{"timing_s/step": 130.0, "perf/total_num_tokens": 2.2 * TOKENS}] * 5
    assert levels("THR-1", steps + longer)[-1] == Level.OK


def test_the_time_of_a_step_is_the_sum_of_its_parts_in_old_logs() -> None:
    def step(gen: float, testing: float = 0.0) -> dict[str, float]:
        return {"timing/gen": gen, "timing/update_actor": 20.0, "timing/testing": testing}

    assert levels("THR-1", [step(40.0)] * 12 + [step(40.0, 60.0)] * 5)[-1] == Level.OK
    assert levels("THR-1", [step(40.0)] * 12 + [step(105.0)] * 3)[-1] == Level.WARN


def memory(values: Iterable[float]) -> list[dict[str, float]]:
    return [{"actor/perf/max_memory_reserved_gb": x, "critic/perf/max_memory_reserved_gb": x - 5} for x in values]


def test_memory_needs_the_size_of_the_gpu() -> None:
    assert levels("MEM-1", memory([79.9] * 3))[-1] == Level.N_A
    assert levels("MEM-1", memory([79.9] * 3), gpu_total_gb=80.0)[-1] == Level.CRITICAL
    assert levels("MEM-1", memory([60.0] * 3), gpu_total_gb=80.0)[-1] == Level.OK


def test_memory_that_rises_in_the_first_steps_is_normal_and_late_growth_is_not() -> None:
    settled = memory([min(60.0, 30.0 + 3 * n) for n in range(60)])
    assert set(levels("MEM-1", settled, gpu_total_gb=80.0)) == {Level.OK}
    creeping = memory([50.0] * 20 + [50.0 + 0.4 * n for n in range(40)])
    checklist = Checklist(clock=False, gpu_total_gb=80.0)
    for number, data in enumerate(creeping, start=1):
        checklist.step(number, data)
    found = row(checklist, "MEM-1")
    assert found.level == Level.WARN
    assert found.message == "65.6 of 80 GB reserved, growing; full in about 32 steps"


def test_host_memory() -> None:
    used = of("perf/cpu_memory_used_gb", [118.0] * 2)
    assert levels("MEM-2", used, host_total_gb=128.0)[-1] == Level.WARN
    assert levels("MEM-2", used)[-1] == Level.N_A


@pytest.mark.parametrize(("run", "level"), [(0.0, Level.OK), (0.5, Level.WARN)])
def test_only_the_growth_of_the_run_itself_counts_where_it_is_known(run: float, level: Level) -> None:
    used = of("actor/perf/cpu_memory_used_gb", [80.0] * 20 + [80.0 + 0.5 * n for n in range(40)])
    held = of("machine/run_memory_gb", [3.0] * 20 + [3.0 + run * n for n in range(40)])
    figures = [a | b for a, b in zip(used, held, strict=True)]
    assert levels("MEM-2", figures, host_total_gb=130.0)[-1] == level
    assert levels("MEM-2", used[:40] + figures[40:], host_total_gb=130.0)[-1] == Level.OK, "too few of the run yet"


@pytest.mark.parametrize(
    ("last", "level", "end"),
    [
        (None, Level.WARN, "full in about 48 steps"),
        (108, Level.WARN, "full in about 48 steps"),
        (107, Level.NOTICE, "full in about 48 steps, after the last step"),
    ],
)
def test_memory_that_outlasts_the_run_is_no_warning(last: int | None, level: Level, end: str) -> None:
    grown = [0.0] * 20 + [0.5 * n for n in range(40)]
    used = [{"actor/perf/cpu_memory_used_gb": 80 + x, "machine/run_memory_gb": 20 + x} for x in grown]
    checklist = Checklist({"trainer.total_training_steps": last}, clock=False, host_total_gb=130.0)
    for number, data in enumerate(used, start=1):
        checklist.step(number, data)
    found = row(checklist, "MEM-2")
    assert found.level == level
    assert found.message == f"99.5 of 130 GB of host memory in use, growing; {end}"


def test_memory_that_is_full_between_steps_is_worth_a_look() -> None:
    checklist = Checklist(gpu_total_gb=80.0)
    for number in range(1, 4):
        for second in range(40):
            checklist.tick(number * 40.0 + second, gpu=(79.0, 80.0), host=(10.0, 100.0))
        checklist.step(number, memory([60.0])[0], t=number * 40.0 + 40)
    assert row(checklist, "MEM-1").level == Level.NOTICE
