"""The groups of a preset about what is optimised: KL, advantage, filtered groups, corrected rollouts."""

from typing import ClassVar, Literal

from launcher.preset.fields import Group, verl
from launcher.verl_config import ACTOR

Estimator = Literal["kl", "k1", "abs", "mse", "k2", "low_var_kl", "k3", "kl+", "k1+", "abs+", "low_var_kl+", "k3+"]
"""A `+` keeps the value and takes the gradient of the squared estimator."""


class Kl(Group, title="KL to the reference"):
    """How the policy is held near the reference: a penalty in the reward, a term in the loss, or both."""

    prefix: ClassVar[str] = "algorithm"

    in_reward: bool | None = verl(
        "Subtract the KL to the reference from the reward (PPO).", key=".use_kl_in_reward", essential=True
    )
    coef: float | None = verl("Weight of the KL in the reward.", key=".kl_ctrl.kl_coef", essential=True, ge=0)
    controller: Literal["fixed", "adaptive"] | None = verl(
        "Whether that weight stays or follows a target.", key=".kl_ctrl.type"
    )
    target: float | None = verl("KL that the adaptive weight aims at.", key=".kl_ctrl.target_kl", gt=0)
    horizon: int | None = verl(
        "How slowly the adaptive weight moves.", key=".kl_ctrl.horizon", unit="samples", scale="125", ge=1
    )
    estimator: Estimator | None = verl("Estimator of the KL in the reward.", key=".kl_penalty")
    in_loss: bool | None = verl(
        "Add the KL to the reference to the actor's loss (GRPO).", key=f"{ACTOR}.use_kl_loss", essential=True
    )
    loss_coef: float | None = verl("Weight of the KL in the loss.", key=f"{ACTOR}.kl_loss_coef", essential=True, ge=0)
    loss_estimator: Estimator | None = verl("Estimator of the KL in the loss.", key=f"{ACTOR}.kl_loss_type")


class Advantage(Group, title="Advantage"):
    """How rewards become advantages."""

    prefix: ClassVar[str] = "algorithm"

    gamma: float | None = verl("Discount of later rewards.", step=0.01, gt=0, le=1)
    lam: float | None = verl("GAE's trade between bias (0) and variance (1).", step=0.01, ge=0, le=1)
    norm_by_std: bool | None = verl(
        "GRPO: divide by the spread of the group; false is Dr. GRPO.", key=".norm_adv_by_std_in_grpo"
    )
    use_pf_ppo: bool | None = verl("Draw samples anew by their score (PF-PPO).")
    pf_ppo_method: Literal["pow", "max_min", "max_random"] | None = verl(
        "How PF-PPO weighs them.", key=".pf_ppo.reweight_method"
    )
    pf_ppo_power: float | None = verl("Power of the score in those weights.", key=".pf_ppo.weight_pow", step=0.5)


class Filter(Group, title="Group filter (DAPO)"):
    """GRPO: leave out prompts whose responses all score the same, and draw others for them."""

    prefix: ClassVar[str] = "algorithm.filter_groups"

    enable: bool | None = verl("Leave such groups out.")
    metric: str | None = verl("What has to differ within a group, such as reward or acc.")
    max_num_gen_batches: int | None = verl("Batches drawn at most for one step; 0 is no limit.", ge=0)
    max_inflight_gen_batches: int | None = verl("Batches drawn at the same time.", ge=1)


class Correction(Group, title="Rollout correction"):
    """Weights for responses that engine and trainer find differently likely."""

    prefix: ClassVar[str] = "algorithm.rollout_correction"

    rollout_is: Literal["token", "sequence"] | None = verl(
        "Importance weights by token or by sequence; none when null."
    )
    rollout_is_threshold: float | str | None = verl("Largest weight.")
    rollout_is_batch_normalize: bool | None = verl("Scale the weights of a batch to a mean of 1.")
    rollout_rs: str | None = verl("Reject what differs too much, by this measure; nothing when null.")
    rollout_rs_threshold: float | str | None = verl("How much is too much.")
    bypass_mode: bool | None = verl("Take the engine's probabilities for the old ones: one pass less.")
    loss_type: Literal["ppo_clip", "reinforce"] | None = verl("Loss in bypass mode.")
