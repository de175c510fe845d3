"""The groups of a preset about the policy: the model it starts from, and how it is updated."""

from __future__ import annotations

from typing import Literal

from launcher.preset.fields import Group, verl

_MODEL, _ACTOR = "actor_rollout_ref.model", "actor_rollout_ref.actor"
_FSDP, _OPTIM = f"{_ACTOR}.fsdp_config", f"{_ACTOR}.optim"

Strategy = Literal["fsdp", "fsdp2"]
Attention = Literal["flash_attention_2", "sdpa", "eager"]
Schedule = Literal["constant", "cosine"]
LossMode = Literal["token-mean", "token-sum", "seq-mean-token-sum", "seq-mean-token-mean", "seq-mean-token-sum-norm"]


class Model(Group, title="Model"):
    """The model that is trained; the critic starts from it too."""

    path: str | None = verl(
        f"{_MODEL}.path", "Folder or Hugging Face name of the model to train.", kind="path or name", essential=True
    )
    tokenizer_path: str | None = verl(
        f"{_MODEL}.tokenizer_path", "Tokenizer, when it is not the model's own.", kind="path or name"
    )
    hf_config_path: str | None = verl(
        f"{_MODEL}.hf_config_path", "Model configuration, when it is not the model's own.", kind="path or name"
    )
    trust_remote_code: bool | None = verl(f"{_MODEL}.trust_remote_code", "Run Python code that comes with the model.")
    external_lib: str | None = verl(f"{_MODEL}.external_lib", "Python module to import before the model is built.")
    custom_chat_template: str | None = verl(
        f"{_MODEL}.custom_chat_template", "Chat template in place of the tokenizer's."
    )
    attention: Attention | None = verl(
        f"+{_MODEL}.override_config.attn_implementation", "Attention kernel; sdpa where flash-attn is missing."
    )
    use_remove_padding: bool | None = verl(f"{_MODEL}.use_remove_padding", "Pack sequences without padding.")
    enable_gradient_checkpointing: bool | None = verl(
        f"{_MODEL}.enable_gradient_checkpointing",
        "Recompute activations: less memory, about a third slower.",
        essential=True,
    )
    enable_activation_offload: bool | None = verl(
        f"{_MODEL}.enable_activation_offload", "Keep activations in host memory."
    )
    use_liger: bool | None = verl(f"{_MODEL}.use_liger", "Liger kernels.")
    use_fused_kernels: bool | None = verl(
        f"{_MODEL}.use_fused_kernels", "Fused log-probability and entropy: no full logits in memory."
    )
    fused_kernels: Literal["torch", "triton"] | None = verl(
        f"{_MODEL}.fused_kernel_options.impl_backend", "What the fused kernels are written in."
    )
    tiled_mlp: bool | None = verl(
        f"{_MODEL}.tiled_mlp.enabled", "Compute the feed-forward layers in pieces: less memory, slower."
    )
    tiled_mlp_shards: int | None = verl(
        f"{_MODEL}.tiled_mlp.num_shards", "Into how many pieces.", scale="double", unit="pieces", ge=1
    )
    use_shm: bool | None = verl(f"{_MODEL}.use_shm", "Copy the weights to /dev/shm first: loads faster.")
    lora_rank: int | None = verl(
        f"{_MODEL}.lora_rank",
        "Rank of the LoRA adapter; 0 trains all weights.",
        essential=True,
        scale="double",
        ge=0,
        le=512,
    )
    lora_alpha: int | None = verl(
        f"{_MODEL}.lora_alpha", "Scale of the LoRA adapter, often the rank or twice it.", scale="double", ge=1
    )
    lora_merge: bool | None = verl(f"{_MODEL}.lora.merge", "Send the engine merged weights instead of the adapter.")
    target_modules: str | list[str] | None = verl(
        f"{_MODEL}.target_modules", "Layers that get an adapter, or all-linear."
    )
    exclude_modules: str | list[str] | None = verl(f"{_MODEL}.exclude_modules", "Layers that get none.")
    lora_adapter_path: str | None = verl(f"{_MODEL}.lora_adapter_path", "Adapter to continue from.", kind="path")


class Actor(Group, title="Actor (the policy)"):
    """The policy and how it is updated."""

    lr: float | None = verl(
        f"{_OPTIM}.lr",
        "Learning rate of the policy: the most sensitive value; 1e-7 to 5e-6 for full fine-tuning.",
        essential=True,
        ge=0,
        le=1,
    )
    lr_warmup_steps: int | None = verl(
        f"{_OPTIM}.lr_warmup_steps", "Steps over which the learning rate rises; -1: by the ratio.", unit="steps", ge=-1
    )
    lr_warmup_steps_ratio: float | None = verl(
        f"{_OPTIM}.lr_warmup_steps_ratio", "The same as a share of all steps.", scale="step", step=0.01, ge=0, le=1
    )
    lr_scheduler_type: Schedule | None = verl(
        f"{_OPTIM}.lr_scheduler_type", "Course of the learning rate after the warm-up."
    )
    min_lr_ratio: float | None = verl(
        f"{_OPTIM}.min_lr_ratio",
        "Lowest learning rate of the cosine, as a share of lr.",
        scale="step",
        step=0.05,
        ge=0,
        le=1,
    )
    num_cycles: float | None = verl(
        f"{_OPTIM}.num_cycles", "Waves of the cosine; 0.5 falls once.", scale="step", step=0.5, gt=0
    )
    weight_decay: float | None = verl(f"{_OPTIM}.weight_decay", "Weight decay of AdamW.", ge=0)
    betas: list[float] | None = verl(f"{_OPTIM}.betas", "AdamW's memory of gradients and of their squares.")
    optimizer: str | None = verl(f"{_OPTIM}.optimizer", "Class of the optimizer, such as AdamW.")
    optimizer_impl: str | None = verl(f"{_OPTIM}.optimizer_impl", "Module that has that class.")
    clip_grad: float | None = verl(f"{_OPTIM}.clip_grad", "Largest gradient norm; 0 would freeze the model.", gt=0)
    ppo_mini_batch_size: int | None = verl(
        f"{_ACTOR}.ppo_mini_batch_size",
        "Prompts for one optimizer step.",
        unit="prompts",
        essential=True,
        scale="divisor",
        ge=1,
    )
    ppo_micro_batch_size_per_gpu: int | None = verl(
        f"{_ACTOR}.ppo_micro_batch_size_per_gpu",
        "Responses for one backward pass on one GPU; needed unless dynamic.",
        unit="responses",
        essential=True,
        scale="divisor",
        ge=1,
    )
    use_dynamic_bsz: bool | None = verl(
        f"{_ACTOR}.use_dynamic_bsz",
        "Fill micro-batches by tokens instead of by count; critic, reference and log-probabilities follow.",
        essential=True,
    )
    ppo_max_token_len_per_gpu: int | None = verl(
        f"{_ACTOR}.ppo_max_token_len_per_gpu",
        "Tokens in one dynamic micro-batch; at least the longest prompt and response together.",
        unit="tokens per GPU",
        essential=True,
        scale="double",
        ge=1,
    )
    ppo_epochs: int | None = verl(f"{_ACTOR}.ppo_epochs", "Passes over each batch of rollouts.", unit="passes", ge=1)
    shuffle: bool | None = verl(f"{_ACTOR}.shuffle", "Shuffle the batch before the mini-batches are cut.")
    data_loader_seed: int | None = verl(f"{_ACTOR}.data_loader_seed", "Seed of that shuffle.", ge=0)
    clip_ratio: float | None = verl(
        f"{_ACTOR}.clip_ratio",
        "How far a probability ratio may move in one update.",
        essential=True,
        scale="step",
        step=0.02,
        gt=0,
    )
    # veRL gives these two a value of their own, so that clip_ratio alone would change nothing.
    clip_ratio_low: float | None = verl(
        f"{_ACTOR}.clip_ratio_low",
        "The same, downwards only.",
        follows="actor.clip_ratio",
        scale="step",
        step=0.02,
        gt=0,
    )
    clip_ratio_high: float | None = verl(
        f"{_ACTOR}.clip_ratio_high",
        "The same, upwards only; 0.28 leaves more room to explore.",
        follows="actor.clip_ratio",
        scale="step",
        step=0.02,
        gt=0,
    )
    clip_ratio_c: float | None = verl(
        f"{_ACTOR}.clip_ratio_c", "Lower bound of the dual clip.", scale="step", step=0.5, gt=1
    )
    loss_agg_mode: LossMode | None = verl(f"{_ACTOR}.loss_agg_mode", "How token losses become one loss.")
    loss_scale_factor: float | None = verl(
        f"{_ACTOR}.loss_scale_factor",
        "What seq-mean-token-sum-norm divides by; the longest response when null.",
        unit="tokens",
        gt=0,
    )
    loss_mode: str | None = verl(f"{_ACTOR}.policy_loss.loss_mode", "Kind of policy loss, vanilla is PPO's.")
    entropy_coeff: float | None = verl(
        f"{_ACTOR}.entropy_coeff", "Bonus for entropy in the loss; 0 switches it off.", essential=True
    )
    calculate_entropy: bool | None = verl(
        f"{_ACTOR}.calculate_entropy", "Measure the entropy even when it earns no bonus."
    )
    entropy_from_logits_with_chunking: bool | None = verl(
        f"{_ACTOR}.entropy_from_logits_with_chunking", "Compute the entropy in pieces: less memory."
    )
    entropy_checkpointing: bool | None = verl(
        f"{_ACTOR}.entropy_checkpointing", "Recompute the entropy in the backward pass: less memory."
    )
    strategy: Strategy | None = verl(f"{_ACTOR}.strategy", "How weights are sharded; fsdp2 is needed on the CPU.")
    param_offload: bool | None = verl(
        f"{_FSDP}.param_offload", "Keep the weights in host memory outside of updates.", essential=True
    )
    optimizer_offload: bool | None = verl(
        f"{_FSDP}.optimizer_offload", "Keep Adam's state in host memory outside of updates.", essential=True
    )
    offload_policy: bool | None = verl(
        f"{_FSDP}.offload_policy", "fsdp2: weights and Adam stay in host memory, even in updates."
    )
    reshard_after_forward: bool | None = verl(
        f"{_FSDP}.reshard_after_forward", "Free gathered weights after the forward pass: less memory, slower."
    )
    fsdp_size: int | None = verl(
        f"{_FSDP}.fsdp_size", "GPUs that share one copy of the weights; -1 is all.", unit="GPUs", ge=-1
    )
    forward_prefetch: bool | None = verl(
        f"{_FSDP}.forward_prefetch", "Gather the next layer's weights early: faster, more memory."
    )
    model_dtype: str | None = verl(f"{_FSDP}.model_dtype", "Type of the master weights.")
    dtype: str | None = verl(f"{_FSDP}.dtype", "Type that is computed in.")
    wrap_min_params: int | None = verl(
        f"{_FSDP}.wrap_policy.min_num_params", "Shard modules with that many parameters; 0: by layer.", ge=0
    )
    use_torch_compile: bool | None = verl(f"{_FSDP}.use_torch_compile", "Compile the entropy with torch.")
    full_determinism: bool | None = verl(f"{_FSDP}.full_determinism", "The same result in every run, more slowly.")
    seed: int | None = verl(f"{_FSDP}.seed", "Seed of the update.", ge=0)
    ulysses_sequence_parallel_size: int | None = verl(
        f"{_ACTOR}.ulysses_sequence_parallel_size", "GPUs that share one sequence.", unit="GPUs", scale="double", ge=1
    )
    save_contents: list[str] | None = verl(
        f"{_ACTOR}.checkpoint.save_contents",
        "What a checkpoint holds; add hf_model for weights in Hugging Face format.",
    )
    load_contents: list[str] | None = verl(
        f"{_ACTOR}.checkpoint.load_contents", "What is read from it; what was saved when null."
    )
    async_save: bool | None = verl(f"{_ACTOR}.checkpoint.async_save", "Write checkpoints beside the training.")
