"""The groups of a preset about the trained model: model, actor, critic, reference, KL, advantage."""

from __future__ import annotations

from typing import Literal

from launcher.preset.fields import Group, verl

_MODEL, _ACTOR, _REF = "actor_rollout_ref.model", "actor_rollout_ref.actor", "actor_rollout_ref.ref"

Strategy = Literal["fsdp", "fsdp2"]
Attention = Literal["flash_attention_2", "sdpa", "eager"]
Schedule = Literal["constant", "cosine"]
LossMode = Literal[
    "token-mean", "token-sum", "seq-mean-token-sum", "seq-mean-token-mean", "seq-mean-token-sum-norm"
]


class Model(Group):
    """The model that is trained; the critic starts from it too."""

    path: str | None = verl(
        f"{_MODEL}.path", "Folder or Hugging Face name of the model to train.", kind="path or name"
    )
    tokenizer_path: str | None = verl(
        f"{_MODEL}.tokenizer_path", "Tokenizer, when it is not the model's own.", kind="path or name"
    )
    trust_remote_code: bool | None = verl(
        f"{_MODEL}.trust_remote_code", "Run Python code that comes with the model."
    )
    attention: Attention | None = verl(
        f"+{_MODEL}.override_config.attn_implementation",
        "Attention kernel; sdpa where flash-attn is missing.",
    )
    use_remove_padding: bool | None = verl(f"{_MODEL}.use_remove_padding", "Pack sequences without padding.")
    enable_gradient_checkpointing: bool | None = verl(
        f"{_MODEL}.enable_gradient_checkpointing", "Recompute activations: less memory, about a third slower."
    )
    enable_activation_offload: bool | None = verl(
        f"{_MODEL}.enable_activation_offload", "Keep activations in host memory."
    )
    use_liger: bool | None = verl(f"{_MODEL}.use_liger", "Liger kernels.")
    use_fused_kernels: bool | None = verl(
        f"{_MODEL}.use_fused_kernels", "Fused log-probability and entropy: no full logits in memory."
    )
    use_shm: bool | None = verl(f"{_MODEL}.use_shm", "Copy the weights to /dev/shm first: loads faster.")
    lora_rank: int | None = verl(
        f"{_MODEL}.lora_rank", "Rank of the LoRA adapter; 0 trains all weights.", ge=0, le=512
    )
    lora_alpha: int | None = verl(f"{_MODEL}.lora_alpha", "Scale of the LoRA adapter.", ge=1)
    target_modules: str | list[str] | None = verl(
        f"{_MODEL}.target_modules", "Layers that get an adapter, or all-linear."
    )
    lora_adapter_path: str | None = verl(
        f"{_MODEL}.lora_adapter_path", "Adapter to continue from.", kind="path"
    )


class Actor(Group):
    """The policy and how it is updated."""

    lr: float | None = verl(
        f"{_ACTOR}.optim.lr",
        "Learning rate of the policy: the most sensitive value; 1e-7 to 5e-6 for full fine-tuning.",
        ge=0,
        le=1,
    )
    lr_warmup_steps: int | None = verl(
        f"{_ACTOR}.optim.lr_warmup_steps",
        "Steps over which the learning rate rises; -1: by the ratio.",
        ge=-1,
    )
    lr_warmup_steps_ratio: float | None = verl(
        f"{_ACTOR}.optim.lr_warmup_steps_ratio", "The same as a share of all steps.", ge=0, le=1
    )
    lr_scheduler_type: Schedule | None = verl(
        f"{_ACTOR}.optim.lr_scheduler_type", "Course of the learning rate after the warm-up."
    )
    min_lr_ratio: float | None = verl(
        f"{_ACTOR}.optim.min_lr_ratio", "Lowest learning rate of the cosine, as a share of lr.", ge=0, le=1
    )
    weight_decay: float | None = verl(f"{_ACTOR}.optim.weight_decay", "Weight decay of AdamW.", ge=0)
    clip_grad: float | None = verl(
        f"{_ACTOR}.optim.clip_grad", "Largest gradient norm; 0 would freeze the model.", gt=0
    )
    ppo_mini_batch_size: int | None = verl(
        f"{_ACTOR}.ppo_mini_batch_size", "Prompts for one optimizer step.", unit="prompts", ge=1
    )
    ppo_micro_batch_size_per_gpu: int | None = verl(
        f"{_ACTOR}.ppo_micro_batch_size_per_gpu",
        "Responses for one backward pass on one GPU; needed unless dynamic.",
        unit="responses",
        ge=1,
    )
    use_dynamic_bsz: bool | None = verl(
        f"{_ACTOR}.use_dynamic_bsz",
        "Fill micro-batches by tokens instead of by count; critic, reference and log-probabilities follow.",
    )
    ppo_max_token_len_per_gpu: int | None = verl(
        f"{_ACTOR}.ppo_max_token_len_per_gpu",
        "Tokens in one dynamic micro-batch.",
        unit="tokens per GPU",
        ge=1,
    )
    ppo_epochs: int | None = verl(f"{_ACTOR}.ppo_epochs", "Passes over each batch of rollouts.", ge=1)
    shuffle: bool | None = verl(f"{_ACTOR}.shuffle", "Shuffle the batch before the mini-batches are cut.")
    clip_ratio: float | None = verl(
        f"{_ACTOR}.clip_ratio", "How far a probability ratio may move in one update.", gt=0
    )
    # veRL gives these two a value of their own, so that clip_ratio alone would change nothing.
    clip_ratio_low: float | None = verl(
        f"{_ACTOR}.clip_ratio_low", "The same, downwards only.", follows="actor.clip_ratio", gt=0
    )
    clip_ratio_high: float | None = verl(
        f"{_ACTOR}.clip_ratio_high", "The same, upwards only.", follows="actor.clip_ratio", gt=0
    )
    clip_ratio_c: float | None = verl(f"{_ACTOR}.clip_ratio_c", "Lower bound of the dual clip.", gt=1)
    loss_agg_mode: LossMode | None = verl(f"{_ACTOR}.loss_agg_mode", "How token losses become one loss.")
    loss_mode: str | None = verl(f"{_ACTOR}.policy_loss.loss_mode", "Kind of policy loss, vanilla is PPO's.")
    entropy_coeff: float | None = verl(
        f"{_ACTOR}.entropy_coeff", "Bonus for entropy in the loss; 0 switches it off."
    )
    strategy: Strategy | None = verl(
        f"{_ACTOR}.strategy", "How weights are sharded; fsdp2 is needed on the CPU."
    )
    param_offload: bool | None = verl(
        f"{_ACTOR}.fsdp_config.param_offload", "Keep the weights in host memory outside of updates."
    )
    optimizer_offload: bool | None = verl(
        f"{_ACTOR}.fsdp_config.optimizer_offload", "Keep Adam's state in host memory outside of updates."
    )
    offload_policy: bool | None = verl(
        f"{_ACTOR}.fsdp_config.offload_policy",
        "fsdp2: weights and Adam stay in host memory, even in updates.",
    )
    model_dtype: str | None = verl(f"{_ACTOR}.fsdp_config.model_dtype", "Type of the master weights.")
    ulysses_sequence_parallel_size: int | None = verl(
        f"{_ACTOR}.ulysses_sequence_parallel_size", "GPUs that share one sequence.", unit="GPUs", ge=1
    )
    save_contents: list[str] | None = verl(
        f"{_ACTOR}.checkpoint.save_contents",
        "What a checkpoint holds; add hf_model for weights in Hugging Face format.",
    )


class Critic(Group):
    """The value model (PPO only; GRPO has none)."""

    path: str | None = verl(
        "critic.model.path", "Model the critic starts from.", follows="model.path", kind="path or name"
    )
    trust_remote_code: bool | None = verl(
        "critic.model.trust_remote_code",
        "Run Python code that comes with the model.",
        follows="model.trust_remote_code",
    )
    attention: Attention | None = verl(
        "+critic.model.override_config.attn_implementation", "Attention kernel.", follows="model.attention"
    )
    use_remove_padding: bool | None = verl(
        "critic.model.use_remove_padding",
        "Pack sequences without padding.",
        follows="model.use_remove_padding",
    )
    enable_gradient_checkpointing: bool | None = verl(
        "critic.model.enable_gradient_checkpointing",
        "Recompute activations.",
        follows="model.enable_gradient_checkpointing",
    )
    lora_rank: int | None = verl(
        "critic.model.lora_rank", "Rank of the critic's LoRA adapter; 0 trains all weights.", ge=0, le=512
    )
    lr: float | None = verl(
        "critic.optim.lr", "Learning rate of the critic, usually 5 to 10 times the actor's.", ge=0, le=1
    )
    lr_warmup_steps: int | None = verl(
        "critic.optim.lr_warmup_steps", "Steps over which the learning rate rises.", ge=-1
    )
    lr_warmup_steps_ratio: float | None = verl(
        "critic.optim.lr_warmup_steps_ratio", "The same as a share of all steps.", ge=0, le=1
    )
    weight_decay: float | None = verl("critic.optim.weight_decay", "Weight decay of AdamW.", ge=0)
    clip_grad: float | None = verl("critic.optim.clip_grad", "Largest gradient norm.", gt=0)
    ppo_mini_batch_size: int | None = verl(
        "critic.ppo_mini_batch_size",
        "Prompts for one optimizer step; the actor's when null.",
        unit="prompts",
        ge=1,
    )
    ppo_micro_batch_size_per_gpu: int | None = verl(
        "critic.ppo_micro_batch_size_per_gpu",
        "Responses for one backward pass; demanded unless dynamic, not used from veRL 0.8 on.",
        unit="responses",
        ge=1,
    )
    ppo_max_token_len_per_gpu: int | None = verl(
        "++critic.ppo_infer_max_token_len_per_gpu",
        "Tokens in one micro-batch of the critic; veRL takes 32768.",
        unit="tokens per GPU",
        ge=1,
    )
    ppo_epochs: int | None = verl("critic.ppo_epochs", "Passes over each batch; the actor's when null.", ge=1)
    cliprange_value: float | None = verl(
        "critic.cliprange_value", "How far a value may move in one update.", gt=0
    )
    strategy: Strategy | None = verl("critic.strategy", "How weights are sharded.", follows="actor.strategy")
    param_offload: bool | None = verl(
        "critic.fsdp.param_offload", "Keep the weights in host memory outside of updates."
    )
    optimizer_offload: bool | None = verl(
        "critic.fsdp.optimizer_offload", "Keep Adam's state in host memory outside of updates."
    )
    offload_policy: bool | None = verl(
        "critic.fsdp.offload_policy", "fsdp2: weights and Adam stay in host memory, even in updates."
    )


class Ref(Group):
    """The frozen reference policy that the KL is measured against."""

    strategy: Strategy | None = verl(f"{_REF}.strategy", "How weights are sharded; the actor's when null.")
    param_offload: bool | None = verl(
        f"{_REF}.fsdp_config.param_offload", "Keep the reference in host memory."
    )
    log_prob_micro_batch_size_per_gpu: int | None = verl(
        f"{_REF}.log_prob_micro_batch_size_per_gpu",
        "Responses for one pass of the reference; needed unless dynamic.",
        unit="responses",
        ge=1,
    )
    log_prob_max_token_len_per_gpu: int | None = verl(
        f"{_REF}.log_prob_max_token_len_per_gpu",
        "Tokens in one dynamic micro-batch; the actor's when null.",
        unit="tokens per GPU",
        ge=1,
    )


class Kl(Group):
    """How the policy is held near the reference: a penalty in the reward, a term in the loss, or both."""

    in_reward: bool | None = verl(
        "algorithm.use_kl_in_reward", "Subtract the KL to the reference from the reward (PPO)."
    )
    coef: float | None = verl("algorithm.kl_ctrl.kl_coef", "Weight of the KL in the reward.", ge=0)
    controller: Literal["fixed", "adaptive"] | None = verl(
        "algorithm.kl_ctrl.type", "Whether that weight stays or follows a target."
    )
    target: float | None = verl("algorithm.kl_ctrl.target_kl", "KL that the adaptive weight aims at.", gt=0)
    horizon: int | None = verl("algorithm.kl_ctrl.horizon", "How slowly the adaptive weight moves.", ge=1)
    estimator: Literal["kl", "k1", "abs", "mse", "k2", "low_var_kl", "k3"] | None = verl(
        "algorithm.kl_penalty", "Estimator of the KL in the reward."
    )
    in_loss: bool | None = verl(
        f"{_ACTOR}.use_kl_loss", "Add the KL to the reference to the actor's loss (GRPO)."
    )
    loss_coef: float | None = verl(f"{_ACTOR}.kl_loss_coef", "Weight of the KL in the loss.", ge=0)
    loss_estimator: Literal["kl", "k1", "abs", "mse", "k2", "low_var_kl", "k3"] | None = verl(
        f"{_ACTOR}.kl_loss_type", "Estimator of the KL in the loss."
    )


class Advantage(Group):
    """How rewards become advantages."""

    gamma: float | None = verl("algorithm.gamma", "Discount of later rewards.", gt=0, le=1)
    lam: float | None = verl("algorithm.lam", "GAE's trade between bias (0) and variance (1).", ge=0, le=1)
    norm_by_std: bool | None = verl(
        "algorithm.norm_adv_by_std_in_grpo", "GRPO: divide by the spread of the group; false is Dr. GRPO."
    )
