"""The groups of a preset about the policy: the model it starts from, and how it is updated."""

from typing import ClassVar, Literal

from launcher.preset.fields import Group, verl
from launcher.verl.algorithms import losses

Strategy = Literal["fsdp", "fsdp2", "fsdp_turbo", "megatron", "veomni", "torchtitan"]
"""The last three belong to `model_engine` of that name."""
Attention = Literal["flash_attention_2", "sdpa", "eager"]
Schedule = Literal["constant", "cosine"]
LossMode = Literal["token-mean", "token-sum", "seq-mean-token-sum", "seq-mean-token-mean", "seq-mean-token-sum-norm"]


class Model(Group, title="Model"):
    """The model that is trained; the critic starts from it too."""

    prefix: ClassVar[str] = "actor_rollout_ref.model"

    path: str | None = verl("Folder or Hugging Face name of the model to train.", kind="path or name", essential=True)
    tokenizer_path: str | None = verl("Tokenizer; null: that of the model.", kind="path or name")
    hf_config_path: str | None = verl("Model configuration; null: that of the model.", kind="path or name")
    trust_remote_code: bool | None = verl("Run Python code shipped with the model.")
    external_lib: str | None = verl("Python module to import before loading the model.")
    custom_chat_template: str | None = verl("Chat template to use instead of the tokenizer's.")
    attention: Attention | None = verl(
        "Attention implementation; use sdpa without flash-attn.", key="+.override_config.attn_implementation"
    )
    use_remove_padding: bool | None = verl("Pack sequences without padding.")
    enable_gradient_checkpointing: bool | None = verl(
        "Recompute activations: less memory, about a third slower.", essential=True
    )
    enable_activation_offload: bool | None = verl("Offload activations to host memory.")
    use_liger: bool | None = verl("Use Liger kernels.")
    use_fused_kernels: bool | None = verl("Fuse log-probability and entropy: no full logits in memory.")
    fused_kernels: Literal["torch", "triton"] | None = verl(
        "Backend of the fused kernels.", key=".fused_kernel_options.impl_backend"
    )
    tiled_mlp: bool | None = verl(
        "Compute feed-forward layers in chunks: less memory, slower.", key=".tiled_mlp.enabled"
    )
    tiled_mlp_shards: int | None = verl(
        "Number of chunks.", key=".tiled_mlp.num_shards", scale="double", unit="pieces", ge=1
    )
    use_shm: bool | None = verl("Copy the weights to /dev/shm first: faster loading.")
    lora_rank: int | None = verl(
        "Rank of the LoRA adapter; 0: train all weights.", essential=True, scale="double", ge=0, le=512
    )
    lora_alpha: int | None = verl(
        "Scale (alpha) of the LoRA adapter, often one or two times the rank.", scale="double", ge=1
    )
    lora_merge: bool | None = verl("Send merged weights to the engine instead of the adapter.", key=".lora.merge")
    target_modules: str | list[str] | None = verl("Layers with an adapter, or all-linear.")
    exclude_modules: str | list[str] | None = verl("Layers without an adapter.")
    lora_adapter_path: str | None = verl("Adapter to continue from.", kind="path")


class Actor(Group, title="Actor (the policy)"):
    """The policy and how it is updated."""

    prefix: ClassVar[str] = "actor_rollout_ref.actor"

    lr: float | None = verl(
        "Learning rate of the policy, the most sensitive setting; 1e-7 to 5e-6 for full fine-tuning.",
        key=".optim.lr",
        essential=True,
        ge=0,
        le=1,
    )
    lr_warmup_steps: int | None = verl(
        "Learning rate warmup in steps; -1: use the ratio.", key=".optim.lr_warmup_steps", unit="steps", ge=-1
    )
    lr_warmup_steps_ratio: float | None = verl(
        "Learning rate warmup as a share of all steps.", key=".optim.lr_warmup_steps_ratio", step=0.01, ge=0, le=1
    )
    lr_scheduler_type: Schedule | None = verl(
        "Learning rate schedule after the warmup.", key=".optim.lr_scheduler_type"
    )
    min_lr_ratio: float | None = verl(
        "Minimum learning rate of the cosine schedule, as a share of lr.",
        key=".optim.min_lr_ratio",
        step=0.05,
        ge=0,
        le=1,
    )
    num_cycles: float | None = verl(
        "Cycles of the cosine schedule; 0.5: one decay.", key=".optim.num_cycles", step=0.5, gt=0
    )
    weight_decay: float | None = verl("Weight decay of AdamW.", key=".optim.weight_decay", ge=0)
    betas: list[float] | None = verl("AdamW decay rates for gradients and squared gradients.", key=".optim.betas")
    optimizer: str | None = verl("Optimizer class, such as AdamW.", key=".optim.optimizer")
    optimizer_impl: str | None = verl("Python module of the optimizer class.", key=".optim.optimizer_impl")
    clip_grad: float | None = verl("Maximum gradient norm; 0 freezes the policy.", key=".optim.clip_grad", gt=0)
    ppo_mini_batch_size: int | None = verl(
        "Prompts per optimizer step.", unit="prompts", essential=True, scale="divisor", ge=1
    )
    ppo_micro_batch_size_per_gpu: int | None = verl(
        "Responses per backward pass and GPU; required unless dynamic.",
        unit="responses",
        essential=True,
        scale="divisor",
        ge=1,
    )
    use_dynamic_bsz: bool | None = verl(
        "Size micro-batches by tokens instead of count; also applies to critic, reference and log-probabilities.",
        essential=True,
    )
    ppo_max_token_len_per_gpu: int | None = verl(
        "Tokens per dynamic micro-batch; at least the longest prompt plus the longest response.",
        unit="tokens per GPU",
        essential=True,
        scale="double",
        ge=1,
    )
    ppo_epochs: int | None = verl("Passes over each batch of rollouts.", unit="passes", ge=1)
    shuffle: bool | None = verl("Shuffle each batch before splitting it into mini-batches.")
    data_loader_seed: int | None = verl("Seed for shuffling the batch.", ge=0)
    clip_ratio: float | None = verl("Clip range of the probability ratio.", essential=True, step=0.02, gt=0)
    # veRL gives these two a value of their own, so that clip_ratio alone would change nothing.
    clip_ratio_low: float | None = verl(
        "Lower clip range of the probability ratio.", follows="actor.clip_ratio", step=0.02, gt=0
    )
    clip_ratio_high: float | None = verl(
        "Upper clip range of the probability ratio; 0.28 allows more exploration.",
        follows="actor.clip_ratio",
        step=0.02,
        gt=0,
    )
    clip_ratio_c: float | None = verl("Lower bound of dual-clip PPO.", step=0.5, gt=1)
    loss_agg_mode: LossMode | None = verl("How token losses are aggregated.")
    loss_scale_factor: float | None = verl(
        "Divisor of seq-mean-token-sum-norm; null: the maximum response length.", unit="tokens", gt=0
    )
    loss_mode: str | None = verl(
        "Policy loss; vanilla is that of PPO.",
        key=".policy_loss.loss_mode",
        offers={each.name: each.meaning for each in losses().values()},
    )
    entropy_coeff: float | None = verl("Coefficient of the entropy bonus in the loss; 0: no bonus.", essential=True)
    calculate_entropy: bool | None = verl("Compute the entropy even without an entropy bonus.")
    entropy_from_logits_with_chunking: bool | None = verl("Compute the entropy in chunks: less memory.")
    entropy_checkpointing: bool | None = verl("Recompute the entropy in the backward pass: less memory.")
    strategy: Strategy | None = verl("How weights are sharded; the CPU requires fsdp2.")
    param_offload: bool | None = verl(
        "Offload weights to host memory between updates.", key=".fsdp_config.param_offload", essential=True
    )
    optimizer_offload: bool | None = verl(
        "Offload Adam state to host memory between updates.", key=".fsdp_config.optimizer_offload", essential=True
    )
    offload_policy: bool | None = verl(
        "fsdp2: keep weights and Adam state in host memory, even during updates.", key=".fsdp_config.offload_policy"
    )
    reshard_after_forward: bool | None = verl(
        "Free gathered weights after the forward pass: less memory, slower.", key=".fsdp_config.reshard_after_forward"
    )
    fsdp_size: int | None = verl(
        "GPUs that share one copy of the weights; -1: all.", key=".fsdp_config.fsdp_size", unit="GPUs", ge=-1
    )
    forward_prefetch: bool | None = verl(
        "Prefetch the weights of the next layer: faster, more memory.", key=".fsdp_config.forward_prefetch"
    )
    model_dtype: str | None = verl("Data type of the master weights.", key=".fsdp_config.model_dtype")
    dtype: str | None = verl("Data type of the computation.", key=".fsdp_config.dtype")
    wrap_min_params: int | None = verl(
        "Minimum parameters of a sharded module; 0: shard by layer.",
        key=".fsdp_config.wrap_policy.min_num_params",
        ge=0,
    )
    use_torch_compile: bool | None = verl(
        "Compile the entropy computation with torch.compile.", key=".fsdp_config.use_torch_compile"
    )
    full_determinism: bool | None = verl("Deterministic results: slower.", key=".fsdp_config.full_determinism")
    seed: int | None = verl("Seed for the update.", key=".fsdp_config.seed", ge=0)
    ulysses_sequence_parallel_size: int | None = verl("GPUs per sequence.", unit="GPUs", scale="double", ge=1)
    save_contents: list[str] | None = verl(
        "Contents of a checkpoint; add hf_model for Hugging Face format.", key=".checkpoint.save_contents"
    )
    load_contents: list[str] | None = verl(
        "Parts to load from a checkpoint; null: everything saved.", key=".checkpoint.load_contents"
    )
    async_save: bool | None = verl("Write checkpoints in the background.", key=".checkpoint.async_save")
