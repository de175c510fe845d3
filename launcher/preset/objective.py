"""The groups of a preset about what is optimised: KL, advantage, filtered groups, corrected rollouts."""

from typing import ClassVar, Literal

from launcher.preset.fields import Group, verl
from launcher.verl.config import ACTOR

Estimator = Literal["kl", "k1", "abs", "mse", "k2", "low_var_kl", "k3", "kl+", "k1+", "abs+", "low_var_kl+", "k3+"]
"""A `+` keeps the value and takes the gradient of the squared estimator."""


class Kl(Group, title="KL to the reference"):
    """How the policy is held near the reference: a penalty in the reward, a term in the loss, or both."""

    prefix: ClassVar[str] = "algorithm"

    in_reward: bool | None = verl(
        "Subtract the KL to the reference from the reward (PPO).", key=".use_kl_in_reward", essential=True
    )
    coef: float | None = verl("KL coefficient in the reward.", key=".kl_ctrl.kl_coef", essential=True, ge=0)
    controller: Literal["fixed", "adaptive"] | None = verl(
        "Keep the KL coefficient fixed or adapt it to a target.", key=".kl_ctrl.type"
    )
    target: float | None = verl("Target KL of the adaptive coefficient.", key=".kl_ctrl.target_kl", gt=0)
    horizon: int | None = verl(
        "Horizon of the adaptive coefficient; larger adapts more slowly.",
        key=".kl_ctrl.horizon",
        unit="samples",
        scale="125",
        ge=1,
    )
    estimator: Estimator | None = verl("KL estimator in the reward.", key=".kl_penalty")
    in_loss: bool | None = verl(
        "Add the KL to the reference to the actor's loss (GRPO).", key=f"{ACTOR}.use_kl_loss", essential=True
    )
    loss_coef: float | None = verl("KL coefficient in the loss.", key=f"{ACTOR}.kl_loss_coef", essential=True, ge=0)
    loss_estimator: Estimator | None = verl("KL estimator in the loss.", key=f"{ACTOR}.kl_loss_type")


class Advantage(Group, title="Advantage"):
    """How rewards become advantages."""

    prefix: ClassVar[str] = "algorithm"

    gamma: float | None = verl("Discount factor for later rewards.", step=0.01, gt=0, le=1)
    lam: float | None = verl("GAE lambda: bias (0) against variance (1).", step=0.01, ge=0, le=1)
    norm_by_std: bool | None = verl(
        "GRPO: divide by the standard deviation of the group; false: Dr. GRPO.", key=".norm_adv_by_std_in_grpo"
    )
    use_pf_ppo: bool | None = verl("Resample responses by score (PF-PPO).")
    pf_ppo_method: Literal["pow", "max_min", "max_random"] | None = verl(
        "How PF-PPO weights responses.", key=".pf_ppo.reweight_method"
    )
    pf_ppo_power: float | None = verl("Exponent of the score in these weights.", key=".pf_ppo.weight_pow", step=0.5)


class Filter(Group, title="Group filter (DAPO)"):
    """GRPO: leave out prompts whose responses all score the same, and draw others for them."""

    prefix: ClassVar[str] = "algorithm.filter_groups"

    enable: bool | None = verl("Drop groups without a difference in the metric.")
    metric: str | None = verl("Metric that must differ within a group, such as reward or acc.")
    max_num_gen_batches: int | None = verl("Maximum batches drawn per step; 0: no limit.", ge=0)
    max_inflight_gen_batches: int | None = verl("Batches drawn concurrently.", ge=1)


class Correction(Group, title="Rollout correction"):
    """Weights for responses that engine and trainer find differently likely."""

    prefix: ClassVar[str] = "algorithm.rollout_correction"

    rollout_is: Literal["token", "sequence"] | None = verl("Importance weights per token or per sequence; null: none.")
    rollout_is_threshold: float | str | None = verl("Maximum importance weight.")
    rollout_is_batch_normalize: bool | None = verl("Normalize the weights of a batch to a mean of 1.")
    rollout_rs: str | None = verl("Measure for rejecting samples that differ too much; null: reject none.")
    rollout_rs_threshold: float | str | None = verl("Rejection threshold.")
    bypass_mode: bool | None = verl("Use the engine's log-probabilities as the old ones: one pass less.")
    loss_type: Literal["ppo_clip", "reinforce"] | None = verl("Loss in bypass mode.")
