"""The groups of a preset about the models beside the policy: the critic and the reference."""

from __future__ import annotations

from launcher.preset.fields import Group, verl
from launcher.preset.policy import Attention, LossMode, Schedule, Strategy

_REF = "actor_rollout_ref.ref"


class Critic(Group, title="Critic (the value model)"):
    """The value model (PPO only; GRPO has none)."""

    enable: bool | None = verl("critic.enable", "Whether there is a critic; the algorithm decides when null.")
    path: str | None = verl(
        "critic.model.path", "Model the critic starts from.", follows="model.path", kind="path or name"
    )
    tokenizer_path: str | None = verl(
        "critic.model.tokenizer_path", "Tokenizer of the critic; the model's when null.", kind="path or name"
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
        "critic.model.use_remove_padding", "Pack sequences without padding.", follows="model.use_remove_padding"
    )
    enable_gradient_checkpointing: bool | None = verl(
        "critic.model.enable_gradient_checkpointing",
        "Recompute activations: less memory, slower.",
        follows="model.enable_gradient_checkpointing",
    )
    enable_activation_offload: bool | None = verl(
        "critic.model.enable_activation_offload", "Keep activations in host memory."
    )
    lora_rank: int | None = verl(
        "critic.model.lora_rank",
        "Rank of the critic's LoRA adapter; 0 trains all weights.",
        scale="double",
        ge=0,
        le=512,
    )
    lora_alpha: int | None = verl("critic.model.lora_alpha", "Scale of the critic's adapter.", scale="double", ge=1)
    target_modules: str | list[str] | None = verl(
        "critic.model.target_modules", "Layers of the critic that get an adapter, or all-linear."
    )
    lr: float | None = verl(
        "critic.optim.lr", "Learning rate of the critic, usually 5 to 10 times the actor's.", essential=True, ge=0, le=1
    )
    lr_warmup_steps: int | None = verl(
        "critic.optim.lr_warmup_steps",
        "Steps over which the learning rate rises; -1: by the ratio.",
        unit="steps",
        ge=-1,
    )
    lr_warmup_steps_ratio: float | None = verl(
        "critic.optim.lr_warmup_steps_ratio", "The same as a share of all steps.", scale="step", step=0.01, ge=0, le=1
    )
    lr_scheduler_type: Schedule | None = verl(
        "critic.optim.lr_scheduler_type", "Course of the learning rate after the warm-up."
    )
    min_lr_ratio: float | None = verl(
        "critic.optim.min_lr_ratio",
        "Lowest learning rate of the cosine, as a share of lr.",
        scale="step",
        step=0.05,
        ge=0,
        le=1,
    )
    weight_decay: float | None = verl("critic.optim.weight_decay", "Weight decay of AdamW.", ge=0)
    betas: list[float] | None = verl("critic.optim.betas", "AdamW's memory of gradients and of their squares.")
    clip_grad: float | None = verl("critic.optim.clip_grad", "Largest gradient norm; 0 would freeze the critic.", gt=0)
    ppo_mini_batch_size: int | None = verl(
        "critic.ppo_mini_batch_size",
        "Prompts for one optimizer step; the actor's when null.",
        unit="prompts",
        scale="divisor",
        ge=1,
    )
    ppo_micro_batch_size_per_gpu: int | None = verl(
        "critic.ppo_micro_batch_size_per_gpu",
        "Responses for one backward pass; demanded unless dynamic, not used from veRL 0.8 on.",
        unit="responses",
        scale="divisor",
        ge=1,
    )
    use_dynamic_bsz: bool | None = verl(
        "critic.use_dynamic_bsz", "Fill micro-batches by tokens; the actor's choice when null."
    )
    ppo_max_token_len_per_gpu: int | None = verl(
        "++critic.ppo_infer_max_token_len_per_gpu",
        "Tokens in one micro-batch of the critic; veRL takes 32768.",
        unit="tokens per GPU",
        scale="double",
        ge=1,
    )
    ppo_epochs: int | None = verl(
        "critic.ppo_epochs", "Passes over each batch; the actor's when null.", unit="passes", ge=1
    )
    shuffle: bool | None = verl(
        "critic.shuffle", "Shuffle before the mini-batches are cut; the actor's choice when null."
    )
    data_loader_seed: int | None = verl("critic.data_loader_seed", "Seed of that shuffle.", ge=0)
    cliprange_value: float | None = verl(
        "critic.cliprange_value", "How far a value may move in one update.", scale="step", step=0.1, gt=0
    )
    loss_agg_mode: LossMode | None = verl(
        "critic.loss_agg_mode", "How token losses become one loss; the actor's way when null."
    )
    strategy: Strategy | None = verl("critic.strategy", "How weights are sharded.", follows="actor.strategy")
    param_offload: bool | None = verl(
        "critic.fsdp.param_offload", "Keep the weights in host memory outside of updates.", essential=True
    )
    optimizer_offload: bool | None = verl(
        "critic.fsdp.optimizer_offload", "Keep Adam's state in host memory outside of updates.", essential=True
    )
    offload_policy: bool | None = verl(
        "critic.fsdp.offload_policy", "fsdp2: weights and Adam stay in host memory, even in updates."
    )
    reshard_after_forward: bool | None = verl(
        "critic.fsdp.reshard_after_forward", "Free gathered weights after the forward pass."
    )
    fsdp_size: int | None = verl(
        "critic.fsdp.fsdp_size", "GPUs that share one copy of the weights; -1 is all.", unit="GPUs", ge=-1
    )
    forward_prefetch: bool | None = verl(
        "critic.fsdp.forward_prefetch", "Gather the next layer's weights early: faster, more memory."
    )
    model_dtype: str | None = verl("critic.fsdp.model_dtype", "Type of the master weights.")
    ulysses_sequence_parallel_size: int | None = verl(
        "critic.fsdp.ulysses_sequence_parallel_size", "GPUs that share one sequence.", unit="GPUs", scale="double", ge=1
    )
    save_contents: list[str] | None = verl("critic.checkpoint.save_contents", "What a checkpoint of the critic holds.")
    load_contents: list[str] | None = verl(
        "critic.checkpoint.load_contents", "What is read from it; what was saved when null."
    )


class Ref(Group, title="Reference"):
    """The frozen reference policy that the KL is measured against."""

    strategy: Strategy | None = verl(f"{_REF}.strategy", "How weights are sharded; the actor's when null.")
    param_offload: bool | None = verl(f"{_REF}.fsdp_config.param_offload", "Keep the reference in host memory.")
    model_dtype: str | None = verl(f"{_REF}.fsdp_config.model_dtype", "Type of the reference's weights.")
    reshard_after_forward: bool | None = verl(
        f"{_REF}.fsdp_config.reshard_after_forward", "Free gathered weights after each pass."
    )
    log_prob_micro_batch_size_per_gpu: int | None = verl(
        f"{_REF}.log_prob_micro_batch_size_per_gpu",
        "Responses for one pass of the reference; needed unless dynamic.",
        unit="responses",
        scale="divisor",
        ge=1,
    )
    log_prob_use_dynamic_bsz: bool | None = verl(
        f"{_REF}.log_prob_use_dynamic_bsz", "Fill its passes by tokens; the actor's choice when null."
    )
    log_prob_max_token_len_per_gpu: int | None = verl(
        f"{_REF}.log_prob_max_token_len_per_gpu",
        "Tokens in one dynamic micro-batch; the actor's when null.",
        unit="tokens per GPU",
        scale="double",
        ge=1,
    )
    entropy_from_logits_with_chunking: bool | None = verl(
        f"{_REF}.entropy_from_logits_with_chunking", "Compute the entropy in pieces: less memory."
    )
    use_torch_compile: bool | None = verl(f"{_REF}.fsdp_config.use_torch_compile", "Compile the entropy with torch.")
    ulysses_sequence_parallel_size: int | None = verl(
        f"{_REF}.ulysses_sequence_parallel_size",
        "GPUs that share one sequence; the actor's when null.",
        unit="GPUs",
        scale="double",
        ge=1,
    )
