"""The groups of a preset about what is optimised: KL, advantage, filtered groups, corrected rollouts."""

from __future__ import annotations

from typing import Literal

from launcher.preset.fields import Group, verl
from launcher.verl_config import ACTOR

_FILTER, _CORRECTION = "algorithm.filter_groups", "algorithm.rollout_correction"

Estimator = Literal["kl", "k1", "abs", "mse", "k2", "low_var_kl", "k3", "kl+", "k1+", "abs+", "low_var_kl+", "k3+"]
"""A `+` keeps the value and takes the gradient of the squared estimator."""


class Kl(Group, title="KL to the reference"):
    """How the policy is held near the reference: a penalty in the reward, a term in the loss, or both."""

    in_reward: bool | None = verl(
        "algorithm.use_kl_in_reward", "Subtract the KL to the reference from the reward (PPO).", essential=True
    )
    coef: float | None = verl("algorithm.kl_ctrl.kl_coef", "Weight of the KL in the reward.", essential=True, ge=0)
    controller: Literal["fixed", "adaptive"] | None = verl(
        "algorithm.kl_ctrl.type", "Whether that weight stays or follows a target."
    )
    target: float | None = verl("algorithm.kl_ctrl.target_kl", "KL that the adaptive weight aims at.", gt=0)
    horizon: int | None = verl(
        "algorithm.kl_ctrl.horizon", "How slowly the adaptive weight moves.", unit="samples", scale="125", ge=1
    )
    estimator: Estimator | None = verl("algorithm.kl_penalty", "Estimator of the KL in the reward.")
    in_loss: bool | None = verl(
        f"{ACTOR}.use_kl_loss", "Add the KL to the reference to the actor's loss (GRPO).", essential=True
    )
    loss_coef: float | None = verl(f"{ACTOR}.kl_loss_coef", "Weight of the KL in the loss.", essential=True, ge=0)
    loss_estimator: Estimator | None = verl(f"{ACTOR}.kl_loss_type", "Estimator of the KL in the loss.")


class Advantage(Group, title="Advantage"):
    """How rewards become advantages."""

    gamma: float | None = verl("algorithm.gamma", "Discount of later rewards.", scale="step", step=0.01, gt=0, le=1)
    lam: float | None = verl(
        "algorithm.lam", "GAE's trade between bias (0) and variance (1).", scale="step", step=0.01, ge=0, le=1
    )
    norm_by_std: bool | None = verl(
        "algorithm.norm_adv_by_std_in_grpo", "GRPO: divide by the spread of the group; false is Dr. GRPO."
    )
    use_pf_ppo: bool | None = verl("algorithm.use_pf_ppo", "Draw samples anew by their score (PF-PPO).")
    pf_ppo_method: Literal["pow", "max_min", "max_random"] | None = verl(
        "algorithm.pf_ppo.reweight_method", "How PF-PPO weighs them."
    )
    pf_ppo_power: float | None = verl(
        "algorithm.pf_ppo.weight_pow", "Power of the score in those weights.", scale="step", step=0.5
    )


class Filter(Group, title="Group filter (DAPO)"):
    """GRPO: leave out prompts whose responses all score the same, and draw others for them."""

    enable: bool | None = verl(f"{_FILTER}.enable", "Leave such groups out.")
    metric: str | None = verl(f"{_FILTER}.metric", "What has to differ within a group, such as reward or acc.")
    max_num_gen_batches: int | None = verl(
        f"{_FILTER}.max_num_gen_batches", "Batches drawn at most for one step; 0 is no limit.", ge=0
    )
    max_inflight_gen_batches: int | None = verl(
        f"{_FILTER}.max_inflight_gen_batches", "Batches drawn at the same time.", ge=1
    )


class Correction(Group, title="Rollout correction"):
    """Weights for responses that engine and trainer find differently likely."""

    rollout_is: Literal["token", "sequence"] | None = verl(
        f"{_CORRECTION}.rollout_is", "Importance weights by token or by sequence; none when null."
    )
    rollout_is_threshold: float | str | None = verl(f"{_CORRECTION}.rollout_is_threshold", "Largest weight.")
    rollout_is_batch_normalize: bool | None = verl(
        f"{_CORRECTION}.rollout_is_batch_normalize", "Scale the weights of a batch to a mean of 1."
    )
    rollout_rs: str | None = verl(
        f"{_CORRECTION}.rollout_rs", "Reject what differs too much, by this measure; nothing when null."
    )
    rollout_rs_threshold: float | str | None = verl(f"{_CORRECTION}.rollout_rs_threshold", "How much is too much.")
    bypass_mode: bool | None = verl(
        f"{_CORRECTION}.bypass_mode", "Take the engine's probabilities for the old ones: one pass less."
    )
    loss_type: Literal["ppo_clip", "reinforce"] | None = verl(f"{_CORRECTION}.loss_type", "Loss in bypass mode.")
