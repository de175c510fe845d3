"""The groups of a preset about the policy: the model it starts from, and how it is updated."""

from typing import ClassVar, Literal

from launcher.preset.fields import Group, verl

Strategy = Literal["fsdp", "fsdp2"]
Attention = Literal["flash_attention_2", "sdpa", "eager"]
Schedule = Literal["constant", "cosine"]
LossMode = Literal["token-mean", "token-sum", "seq-mean-token-sum", "seq-mean-token-mean", "seq-mean-token-sum-norm"]


class Model(Group, title="Model"):
    """The model that is trained; the critic starts from it too."""

    prefix: ClassVar[str] = "actor_rollout_ref.model"

    path: str | None = verl("Folder or Hugging Face name of the model to train.", kind="path or name", essential=True)
    tokenizer_path: str | None = verl("Tokenizer, when it is not the model's own.", kind="path or name")
    hf_config_path: str | None = verl("Model configuration, when it is not the model's own.", kind="path or name")
    trust_remote_code: bool | None = verl("Run Python code that comes with the model.")
    external_lib: str | None = verl("Python module to import before the model is built.")
    custom_chat_template: str | None = verl("Chat template in place of the tokenizer's.")
    attention: Attention | None = verl(
        "Attention kernel; sdpa where flash-attn is missing.", key="+.override_config.attn_implementation"
    )
    use_remove_padding: bool | None = verl("Pack sequences without padding.")
    enable_gradient_checkpointing: bool | None = verl(
        "Recompute activations: less memory, about a third slower.", essential=True
    )
    enable_activation_offload: bool | None = verl("Keep activations in host memory.")
    use_liger: bool | None = verl("Liger kernels.")
    use_fused_kernels: bool | None = verl("Fused log-probability and entropy: no full logits in memory.")
    fused_kernels: Literal["torch", "triton"] | None = verl(
        "What the fused kernels are written in.", key=".fused_kernel_options.impl_backend"
    )
    tiled_mlp: bool | None = verl(
        "Compute the feed-forward layers in pieces: less memory, slower.", key=".tiled_mlp.enabled"
    )
    tiled_mlp_shards: int | None = verl(
        "Into how many pieces.", key=".tiled_mlp.num_shards", scale="double", unit="pieces", ge=1
    )
    use_shm: bool | None = verl("Copy the weights to /dev/shm first: loads faster.")
    lora_rank: int | None = verl(
        "Rank of the LoRA adapter; 0 trains all weights.", essential=True, scale="double", ge=0, le=512
    )
    lora_alpha: int | None = verl("Scale of the LoRA adapter, often the rank or twice it.", scale="double", ge=1)
    lora_merge: bool | None = verl("Send the engine merged weights instead of the adapter.", key=".lora.merge")
    target_modules: str | list[str] | None = verl("Layers that get an adapter, or all-linear.")
    exclude_modules: str | list[str] | None = verl("Layers that get none.")
    lora_adapter_path: str | None = verl("Adapter to continue from.", kind="path")


class Actor(Group, title="Actor (the policy)"):
    """The policy and how it is updated."""

    prefix: ClassVar[str] = "actor_rollout_ref.actor"

    lr: float | None = verl(
        "Learning rate of the policy: the most sensitive value; 1e-7 to 5e-6 for full fine-tuning.",
        key=".optim.lr",
        essential=True,
        ge=0,
        le=1,
    )
    lr_warmup_steps: int | None = verl(
        "Steps over which the learning rate rises; -1: by the ratio.", key=".optim.lr_warmup_steps", unit="steps", ge=-1
    )
    lr_warmup_steps_ratio: float | None = verl(
        "The same as a share of all steps.", key=".optim.lr_warmup_steps_ratio", step=0.01, ge=0, le=1
    )
    lr_scheduler_type: Schedule | None = verl(
        "Course of the learning rate after the warm-up.", key=".optim.lr_scheduler_type"
    )
    min_lr_ratio: float | None = verl(
        "Lowest learning rate of the cosine, as a share of lr.", key=".optim.min_lr_ratio", step=0.05, ge=0, le=1
    )
    num_cycles: float | None = verl("Waves of the cosine; 0.5 falls once.", key=".optim.num_cycles", step=0.5, gt=0)
    weight_decay: float | None = verl("Weight decay of AdamW.", key=".optim.weight_decay", ge=0)
    betas: list[float] | None = verl("AdamW's memory of gradients and of their squares.", key=".optim.betas")
    optimizer: str | None = verl("Class of the optimizer, such as AdamW.", key=".optim.optimizer")
    optimizer_impl: str | None = verl("Module that has that class.", key=".optim.optimizer_impl")
    clip_grad: float | None = verl("Largest gradient norm; 0 would freeze the model.", key=".optim.clip_grad", gt=0)
    ppo_mini_batch_size: int | None = verl(
        "Prompts for one optimizer step.", unit="prompts", essential=True, scale="divisor", ge=1
    )
    ppo_micro_batch_size_per_gpu: int | None = verl(
        "Responses for one backward pass on one GPU; needed unless dynamic.",
        unit="responses",
        essential=True,
        scale="divisor",
        ge=1,
    )
    use_dynamic_bsz: bool | None = verl(
        "Fill micro-batches by tokens instead of by count; critic, reference and log-probabilities follow.",
        essential=True,
    )
    ppo_max_token_len_per_gpu: int | None = verl(
        "Tokens in one dynamic micro-batch; at least the longest prompt and response together.",
        unit="tokens per GPU",
        essential=True,
        scale="double",
        ge=1,
    )
    ppo_epochs: int | None = verl("Passes over each batch of rollouts.", unit="passes", ge=1)
    shuffle: bool | None = verl("Shuffle the batch before the mini-batches are cut.")
    data_loader_seed: int | None = verl("Seed of that shuffle.", ge=0)
    clip_ratio: float | None = verl(
        "How far a probability ratio may move in one update.", essential=True, step=0.02, gt=0
    )
    # veRL gives these two a value of their own, so that clip_ratio alone would change nothing.
    clip_ratio_low: float | None = verl("The same, downwards only.", follows="actor.clip_ratio", step=0.02, gt=0)
    clip_ratio_high: float | None = verl(
        "The same, upwards only; 0.28 leaves more room to explore.", follows="actor.clip_ratio", step=0.02, gt=0
    )
    clip_ratio_c: float | None = verl("Lower bound of the dual clip.", step=0.5, gt=1)
    loss_agg_mode: LossMode | None = verl("How token losses become one loss.")
    loss_scale_factor: float | None = verl(
        "What seq-mean-token-sum-norm divides by; the longest response when null.", unit="tokens", gt=0
    )
    loss_mode: str | None = verl("Kind of policy loss, vanilla is PPO's.", key=".policy_loss.loss_mode")
    entropy_coeff: float | None = verl("Bonus for entropy in the loss; 0 switches it off.", essential=True)
    calculate_entropy: bool | None = verl("Measure the entropy even when it earns no bonus.")
    entropy_from_logits_with_chunking: bool | None = verl("Compute the entropy in pieces: less memory.")
    entropy_checkpointing: bool | None = verl("Recompute the entropy in the backward pass: less memory.")
    strategy: Strategy | None = verl("How weights are sharded; fsdp2 is needed on the CPU.")
    param_offload: bool | None = verl(
        "Keep the weights in host memory outside of updates.", key=".fsdp_config.param_offload", essential=True
    )
    optimizer_offload: bool | None = verl(
        "Keep Adam's state in host memory outside of updates.", key=".fsdp_config.optimizer_offload", essential=True
    )
    offload_policy: bool | None = verl(
        "fsdp2: weights and Adam stay in host memory, even in updates.", key=".fsdp_config.offload_policy"
    )
    reshard_after_forward: bool | None = verl(
        "Free gathered weights after the forward pass: less memory, slower.", key=".fsdp_config.reshard_after_forward"
    )
    fsdp_size: int | None = verl(
        "GPUs that share one copy of the weights; -1 is all.", key=".fsdp_config.fsdp_size", unit="GPUs", ge=-1
    )
    forward_prefetch: bool | None = verl(
        "Gather the next layer's weights early: faster, more memory.", key=".fsdp_config.forward_prefetch"
    )
    model_dtype: str | None = verl("Type of the master weights.", key=".fsdp_config.model_dtype")
    dtype: str | None = verl("Type that is computed in.", key=".fsdp_config.dtype")
    wrap_min_params: int | None = verl(
        "Shard modules with that many parameters; 0: by layer.", key=".fsdp_config.wrap_policy.min_num_params", ge=0
    )
    use_torch_compile: bool | None = verl("Compile the entropy with torch.", key=".fsdp_config.use_torch_compile")
    full_determinism: bool | None = verl(
        "The same result in every run, more slowly.", key=".fsdp_config.full_determinism"
    )
    seed: int | None = verl("Seed of the update.", key=".fsdp_config.seed", ge=0)
    ulysses_sequence_parallel_size: int | None = verl(
        "GPUs that share one sequence.", unit="GPUs", scale="double", ge=1
    )
    save_contents: list[str] | None = verl(
        "What a checkpoint holds; add hf_model for weights in Hugging Face format.", key=".checkpoint.save_contents"
    )
    load_contents: list[str] | None = verl(
        "What is read from it; what was saved when null.", key=".checkpoint.load_contents"
    )
    async_save: bool | None = verl("Write checkpoints beside the training.", key=".checkpoint.async_save")
