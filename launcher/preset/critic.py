"""The groups of a preset about the models beside the policy: the critic and the reference."""

from typing import ClassVar

from launcher.preset.fields import Group, verl
from launcher.preset.policy import Attention, LossMode, Schedule, Strategy


class Critic(Group, title="Critic (the value model)"):
    """The value model (PPO only; GRPO has none)."""

    prefix: ClassVar[str] = "critic"

    enable: bool | None = verl("Use a critic; null: depends on the algorithm.")
    path: str | None = verl(
        "Initial model of the critic.", key=".model.path", follows="model.path", kind="path or name"
    )
    tokenizer_path: str | None = verl(
        "Tokenizer of the critic; null: that of its model.", key=".model.tokenizer_path", kind="path or name"
    )
    trust_remote_code: bool | None = verl(
        "Run Python code shipped with the model.", key=".model.trust_remote_code", follows="model.trust_remote_code"
    )
    attention: Attention | None = verl(
        "Attention implementation.", key="+.model.override_config.attn_implementation", follows="model.attention"
    )
    use_remove_padding: bool | None = verl(
        "Pack sequences without padding.", key=".model.use_remove_padding", follows="model.use_remove_padding"
    )
    enable_gradient_checkpointing: bool | None = verl(
        "Recompute activations: less memory, slower.",
        key=".model.enable_gradient_checkpointing",
        follows="model.enable_gradient_checkpointing",
    )
    enable_activation_offload: bool | None = verl(
        "Offload activations to host memory.", key=".model.enable_activation_offload"
    )
    lora_rank: int | None = verl(
        "Rank of the critic's LoRA adapter; 0: train all weights.", key=".model.lora_rank", scale="double", ge=0, le=512
    )
    lora_alpha: int | None = verl(
        "Scale (alpha) of the critic's adapter.", key=".model.lora_alpha", scale="double", ge=1
    )
    target_modules: str | list[str] | None = verl(
        "Critic layers with an adapter, or all-linear.", key=".model.target_modules"
    )
    lr: float | None = verl(
        "Learning rate of the critic, usually 5 to 10 times that of the actor.",
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
    weight_decay: float | None = verl("Weight decay of AdamW.", key=".optim.weight_decay", ge=0)
    betas: list[float] | None = verl("AdamW decay rates for gradients and squared gradients.", key=".optim.betas")
    clip_grad: float | None = verl("Maximum gradient norm; 0 freezes the critic.", key=".optim.clip_grad", gt=0)
    ppo_mini_batch_size: int | None = verl(
        "Prompts per optimizer step; null: as for the actor.", unit="prompts", scale="divisor", ge=1
    )
    ppo_micro_batch_size_per_gpu: int | None = verl(
        "Responses per backward pass; required unless dynamic, unused since veRL 0.8.",
        unit="responses",
        scale="divisor",
        ge=1,
    )
    use_dynamic_bsz: bool | None = verl("Size micro-batches by tokens; null: as for the actor.")
    ppo_max_token_len_per_gpu: int | None = verl(
        "Tokens per micro-batch of the critic; veRL's default is 32768.",
        key="++.ppo_infer_max_token_len_per_gpu",
        unit="tokens per GPU",
        scale="double",
        ge=1,
    )
    ppo_epochs: int | None = verl("Passes over each batch; null: as for the actor.", unit="passes", ge=1)
    shuffle: bool | None = verl("Shuffle each batch before splitting it into mini-batches; null: as for the actor.")
    data_loader_seed: int | None = verl("Seed for shuffling the batch.", ge=0)
    cliprange_value: float | None = verl("Clip range of value updates.", step=0.1, gt=0)
    loss_agg_mode: LossMode | None = verl("How token losses are aggregated; null: as for the actor.")
    strategy: Strategy | None = verl("How weights are sharded.", follows="actor.strategy")
    param_offload: bool | None = verl(
        "Offload weights to host memory between updates.", key=".fsdp.param_offload", essential=True
    )
    optimizer_offload: bool | None = verl(
        "Offload Adam state to host memory between updates.", key=".fsdp.optimizer_offload", essential=True
    )
    offload_policy: bool | None = verl(
        "fsdp2: keep weights and Adam state in host memory, even during updates.", key=".fsdp.offload_policy"
    )
    reshard_after_forward: bool | None = verl(
        "Free gathered weights after the forward pass.", key=".fsdp.reshard_after_forward"
    )
    fsdp_size: int | None = verl(
        "GPUs that share one copy of the weights; -1: all.", key=".fsdp.fsdp_size", unit="GPUs", ge=-1
    )
    forward_prefetch: bool | None = verl(
        "Prefetch the weights of the next layer: faster, more memory.", key=".fsdp.forward_prefetch"
    )
    model_dtype: str | None = verl("Data type of the master weights.", key=".fsdp.model_dtype")
    ulysses_sequence_parallel_size: int | None = verl(
        "GPUs per sequence.", key=".fsdp.ulysses_sequence_parallel_size", unit="GPUs", scale="double", ge=1
    )
    save_contents: list[str] | None = verl("Contents of a critic checkpoint.", key=".checkpoint.save_contents")
    load_contents: list[str] | None = verl(
        "Parts to load from a checkpoint; null: everything saved.", key=".checkpoint.load_contents"
    )


class Ref(Group, title="Reference"):
    """The frozen reference policy that the KL is measured against."""

    prefix: ClassVar[str] = "actor_rollout_ref.ref"

    strategy: Strategy | None = verl("How weights are sharded; null: as for the actor.")
    param_offload: bool | None = verl("Offload the reference to host memory.", key=".fsdp_config.param_offload")
    model_dtype: str | None = verl("Data type of the reference weights.", key=".fsdp_config.model_dtype")
    reshard_after_forward: bool | None = verl(
        "Free gathered weights after each pass.", key=".fsdp_config.reshard_after_forward"
    )
    log_prob_micro_batch_size_per_gpu: int | None = verl(
        "Responses per pass of the reference; required unless dynamic.", unit="responses", scale="divisor", ge=1
    )
    log_prob_use_dynamic_bsz: bool | None = verl("Size micro-batches by tokens; null: as for the actor.")
    log_prob_max_token_len_per_gpu: int | None = verl(
        "Tokens per dynamic micro-batch; null: as for the actor.", unit="tokens per GPU", scale="double", ge=1
    )
    entropy_from_logits_with_chunking: bool | None = verl("Compute the entropy in chunks: less memory.")
    use_torch_compile: bool | None = verl(
        "Compile the entropy computation with torch.compile.", key=".fsdp_config.use_torch_compile"
    )
    ulysses_sequence_parallel_size: int | None = verl(
        "GPUs per sequence; null: as for the actor.", unit="GPUs", scale="double", ge=1
    )
