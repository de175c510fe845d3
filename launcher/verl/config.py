"""veRL's key names, and shared questions about a configuration.

`launcher.health.config.RunConfig` answers from a run's log, where much may be unknown;
`launcher.preset.effective.EffectiveConfig` has veRL's defaults and answers every question.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, overload

from launcher.verl.algorithms import estimators

ACTOR, ROLLOUT, REF = "actor_rollout_ref.actor", "actor_rollout_ref.rollout", "actor_rollout_ref.ref"
MODEL, CRITIC, TRAINER, DATA = "actor_rollout_ref.model", "critic", "trainer", "data"
REWARD_MODEL, RAY = "reward.reward_model", "ray_kwargs.ray_init"

ESTIMATOR, LOSS_MODE = "algorithm.adv_estimator", f"{ACTOR}.policy_loss.loss_mode"
CRITIC_ALONE = "trainer.critic_warmup"  # steps
GAMMA = "algorithm.gamma"
KL_IN_REWARD, KL_IN_LOSS = "algorithm.use_kl_in_reward", f"{ACTOR}.use_kl_loss"
MODEL_PATH, CRITIC_PATH = f"{MODEL}.path", f"{CRITIC}.model.path"
BATCH, N, NODES, GPUS = f"{DATA}.train_batch_size", f"{ROLLOUT}.n", f"{TRAINER}.nnodes", f"{TRAINER}.n_gpus_per_node"
PROMPT, RESPONSE = f"{DATA}.max_prompt_length", f"{DATA}.max_response_length"
MINI, MICRO = f"{ACTOR}.ppo_mini_batch_size", f"{ACTOR}.ppo_micro_batch_size_per_gpu"
CRITIC_MINI, CRITIC_MICRO = f"{CRITIC}.ppo_mini_batch_size", f"{CRITIC}.ppo_micro_batch_size_per_gpu"
LOG_PROB, REF_LOG_PROB = f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu", f"{REF}.log_prob_micro_batch_size_per_gpu"
DYNAMIC, LOG_PROB_DYNAMIC = f"{ACTOR}.use_dynamic_bsz", f"{ROLLOUT}.log_prob_use_dynamic_bsz"
TOKENS, LOG_PROB_TOKENS = f"{ACTOR}.ppo_max_token_len_per_gpu", f"{ROLLOUT}.log_prob_max_token_len_per_gpu"
CRITIC_TOKENS = f"{CRITIC}.ppo_infer_max_token_len_per_gpu"
ULYSSES, CRITIC_ULYSSES = f"{ACTOR}.ulysses_sequence_parallel_size", f"{CRITIC}.fsdp.ulysses_sequence_parallel_size"
TENSOR, MODEL_LENGTH = f"{ROLLOUT}.tensor_model_parallel_size", f"{ROLLOUT}.max_model_len"
ENGINE, UTILISATION = f"{ROLLOUT}.name", f"{ROLLOUT}.gpu_memory_utilization"
ENGINE_GPUS, ENGINE_NODES = f"{ROLLOUT}.n_gpus_per_node", f"{ROLLOUT}.nnodes"
TRANSFER, HYBRID = f"{ROLLOUT}.checkpoint_engine.backend", "actor_rollout_ref.hybrid_engine"
TRAINER_MODE, SYNC_STEP = f"{TRAINER}.v1.trainer_mode", f"{TRAINER}.v1.separate_async.parameter_sync_step"
MAX_AGE, OLD_ONES = f"{TRAINER}.v1.sampler.max_off_policy_threshold", f"{TRAINER}.v1.sampler.max_off_policy_strategy"
CORRECTION = "algorithm.rollout_correction"

_CLIPS_BY_DESIGN = ("gspo", "cispo", "geo_mean")
_SWITCHES = {"true": True, "false": False}
Ranges = Mapping[str, tuple[float, float]]
"""The lowest and highest usual value per veRL key, with the newest version's names."""


def ray_address(keys: Mapping[str, Any]) -> str | None:
    """A run's Ray address, by the keys of its start: `local` is its own Ray, None lets Ray decide."""
    return next((value for key, value in keys.items() if key.endswith("ray_init.address")), None)


class VerlConfig(ABC):
    """A configuration of veRL. An answer is None if the underlying keys are unknown.

    `usual`: ranges declared in the preset for its own values.
    """

    usual: Ranges

    @abstractmethod
    def get(self, key: str, default: Any = None) -> Any:
        """The value of a veRL key; `default` if unknown."""

    def number(self, key: str) -> float | None:
        """A key's value as a number; None if unknown or not a number."""
        value = self.get(key)
        if isinstance(value, bool) or value is None:
            return None
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError):
            return None

    def whole(self, key: str, least: int = 1) -> int | None:
        """A key's value as an integer of at least `least`; otherwise None."""
        value = self.get(key)
        return value if type(value) is int and value >= least else None

    def text(self, key: str) -> str | None:
        """A key's value as text; None if unknown."""
        value = self.get(key)
        return None if value is None else str(value)

    @overload
    def flag(self, key: str) -> bool | None: ...
    @overload
    def flag(self, key: str, default: bool) -> bool: ...
    def flag(self, key: str, default: bool | None = None) -> bool | None:
        """A key's value as a switch; `default` if unknown or not a switch."""
        value = self.get(key)
        if isinstance(value, str):
            return _SWITCHES.get(value.strip().lower(), default)
        return bool(value) if isinstance(value, (bool, int)) else default

    @property
    def kl_in_reward(self) -> bool | None:
        """Whether the KL penalty is part of the reward."""
        return self.flag(KL_IN_REWARD)

    @property
    def kl_in_loss(self) -> bool | None:
        """Whether the actor's loss has a KL term."""
        return self.flag(KL_IN_LOSS)

    @property
    def estimator(self) -> str | None:
        """The advantage estimator: gae, grpo, ..."""
        return self.text(ESTIMATOR)

    @property
    def has_critic(self) -> bool | None:
        """Whether a critic is trained: `critic.enable`, or GAE. veRL: `verl/trainer/ppo/utils.py: need_critic`."""
        enabled = self.flag("critic.enable")
        return enabled if enabled is not None or self.estimator is None else self.estimator == "gae"

    @property
    def keeps(self) -> tuple[str, ...]:
        """The keys for the number of kept checkpoints: the actor's, and a critic's if there is one."""
        return tuple(f"trainer.max_{model}_ckpt_to_keep" for model in ("actor", "critic")[: 1 + bool(self.has_critic)])

    @property
    def most_checkpoints(self) -> int | None:
        """Maximum number of checkpoints on disk; None if all are kept.

        veRL removes the oldest before it writes another one, but an only one afterwards
        (`verl/utils/checkpoint/checkpoint_manager.py`).
        """
        kept = [self.whole(key) for key in self.keeps]
        return max(2, *filter(None, kept)) if all(kept) else None

    @property
    def discounts(self) -> bool | None:
        """Whether `algorithm.gamma` discounts later rewards; None for estimators that veRL lacks.

        veRL: `verl/trainer/ppo/core_algos.py: compute_gae_advantage_return,
        compute_reinforce_plus_plus_outcome_advantage`.
        """
        return self.estimator in ("gae", "reinforce_plus_plus") if self.estimator in estimators() else None

    @property
    def has_reference(self) -> bool | None:
        """Whether a KL term in reward or loss needs a reference policy.

        veRL: `verl/trainer/ppo/utils.py: need_reference_policy`.
        """
        return self.kl_in_reward or self.kl_in_loss

    @property
    def group_based(self) -> bool | None:
        """Whether advantages compare several responses to one prompt."""
        if self.estimator is None:
            return None
        known = estimators().get(self.estimator)
        return known is not None and known.group

    @property
    def token_mean(self) -> bool:
        """Whether losses are token means, so that absolute limits hold; assumed if unknown."""
        return self.text(f"{ACTOR}.loss_agg_mode") in (None, "token-mean")

    @property
    def trainer_mode(self) -> str:
        """How the v1 trainer schedules rollouts; `sync` for the legacy trainer, or if unknown."""
        return self.text(TRAINER_MODE) or "sync"

    @property
    def rounding_rate(self) -> float:
        """The learning rate below which the actor's weights lose most updates to rounding; 0 if they lose none.

        A step of Adam is about as large as the rate, and a weight of 0.02 in bf16 has a spacing of 8e-5. LoRA's
        matrices start at 0.
        """
        half = self.text(f"{ACTOR}.fsdp_config.model_dtype") in ("bf16", "bfloat16")
        return 1e-5 if half and not self.number(f"{MODEL}.lora_rank") else 0.0

    @property
    def clips_by_design(self) -> str | None:
        """The policy loss, if its clipped share is high in healthy runs."""
        mode = self.text(LOSS_MODE)
        return mode if mode in _CLIPS_BY_DESIGN else None
