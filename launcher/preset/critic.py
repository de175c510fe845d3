"""The groups of a preset about the models beside the policy: the critic and the reference."""

from typing import ClassVar

from launcher.preset.fields import Group, verl
from launcher.preset.policy import Attention, LossMode, Schedule, Strategy


class Critic(Group, title="Critic (the value model)"):
    """The value model (PPO only; GRPO has none)."""

    prefix: ClassVar[str] = "critic"

    enable: bool | None = verl("Whether there is a critic; the algorithm decides when null.")
    path: str | None = verl(
        "Model the critic starts from.", key=".model.path", follows="model.path", kind="path or name"
    )
    tokenizer_path: str | None = verl(
        "Tokenizer of the critic; the model's when null.", key=".model.tokenizer_path", kind="path or name"
    )
    trust_remote_code: bool | None = verl(
        "Run Python code that comes with the model.", key=".model.trust_remote_code", follows="model.trust_remote_code"
    )
    attention: Attention | None = verl(
        "Attention kernel.", key="+.model.override_config.attn_implementation", follows="model.attention"
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
        "Keep activations in host memory.", key=".model.enable_activation_offload"
    )
    lora_rank: int | None = verl(
        "Rank of the critic's LoRA adapter; 0 trains all weights.", key=".model.lora_rank", scale="double", ge=0, le=512
    )
    lora_alpha: int | None = verl("Scale of the critic's adapter.", key=".model.lora_alpha", scale="double", ge=1)
    target_modules: str | list[str] | None = verl(
        "Layers of the critic that get an adapter, or all-linear.", key=".model.target_modules"
    )
    lr: float | None = verl(
        "Learning rate of the critic, usually 5 to 10 times the actor's.", key=".optim.lr", essential=True, ge=0, le=1
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
    weight_decay: float | None = verl("Weight decay of AdamW.", key=".optim.weight_decay", ge=0)
    betas: list[float] | None = verl("AdamW's memory of gradients and of their squares.", key=".optim.betas")
    clip_grad: float | None = verl("Largest gradient norm; 0 would freeze the critic.", key=".optim.clip_grad", gt=0)
    ppo_mini_batch_size: int | None = verl(
        "Prompts for one optimizer step; the actor's when null.", unit="prompts", scale="divisor", ge=1
    )
    ppo_micro_batch_size_per_gpu: int | None = verl(
        "Responses for one backward pass; demanded unless dynamic, not used from veRL 0.8 on.",
        unit="responses",
        scale="divisor",
        ge=1,
    )
    use_dynamic_bsz: bool | None = verl("Fill micro-batches by tokens; the actor's choice when null.")
    ppo_max_token_len_per_gpu: int | None = verl(
        "Tokens in one micro-batch of the critic; veRL takes 32768.",
        key="++.ppo_infer_max_token_len_per_gpu",
        unit="tokens per GPU",
        scale="double",
        ge=1,
    )
    ppo_epochs: int | None = verl("Passes over each batch; the actor's when null.", unit="passes", ge=1)
    shuffle: bool | None = verl("Shuffle before the mini-batches are cut; the actor's choice when null.")
    data_loader_seed: int | None = verl("Seed of that shuffle.", ge=0)
    cliprange_value: float | None = verl("How far a value may move in one update.", step=0.1, gt=0)
    loss_agg_mode: LossMode | None = verl("How token losses become one loss; the actor's way when null.")
    strategy: Strategy | None = verl("How weights are sharded.", follows="actor.strategy")
    param_offload: bool | None = verl(
        "Keep the weights in host memory outside of updates.", key=".fsdp.param_offload", essential=True
    )
    optimizer_offload: bool | None = verl(
        "Keep Adam's state in host memory outside of updates.", key=".fsdp.optimizer_offload", essential=True
    )
    offload_policy: bool | None = verl(
        "fsdp2: weights and Adam stay in host memory, even in updates.", key=".fsdp.offload_policy"
    )
    reshard_after_forward: bool | None = verl(
        "Free gathered weights after the forward pass.", key=".fsdp.reshard_after_forward"
    )
    fsdp_size: int | None = verl(
        "GPUs that share one copy of the weights; -1 is all.", key=".fsdp.fsdp_size", unit="GPUs", ge=-1
    )
    forward_prefetch: bool | None = verl(
        "Gather the next layer's weights early: faster, more memory.", key=".fsdp.forward_prefetch"
    )
    model_dtype: str | None = verl("Type of the master weights.", key=".fsdp.model_dtype")
    ulysses_sequence_parallel_size: int | None = verl(
        "GPUs that share one sequence.", key=".fsdp.ulysses_sequence_parallel_size", unit="GPUs", scale="double", ge=1
    )
    save_contents: list[str] | None = verl("What a checkpoint of the critic holds.", key=".checkpoint.save_contents")
    load_contents: list[str] | None = verl(
        "What is read from it; what was saved when null.", key=".checkpoint.load_contents"
    )


class Ref(Group, title="Reference"):
    """The frozen reference policy that the KL is measured against."""

    prefix: ClassVar[str] = "actor_rollout_ref.ref"

    strategy: Strategy | None = verl("How weights are sharded; the actor's when null.")
    param_offload: bool | None = verl("Keep the reference in host memory.", key=".fsdp_config.param_offload")
    model_dtype: str | None = verl("Type of the reference's weights.", key=".fsdp_config.model_dtype")
    reshard_after_forward: bool | None = verl(
        "Free gathered weights after each pass.", key=".fsdp_config.reshard_after_forward"
    )
    log_prob_micro_batch_size_per_gpu: int | None = verl(
        "Responses for one pass of the reference; needed unless dynamic.", unit="responses", scale="divisor", ge=1
    )
    log_prob_use_dynamic_bsz: bool | None = verl("Fill its passes by tokens; the actor's choice when null.")
    log_prob_max_token_len_per_gpu: int | None = verl(
        "Tokens in one dynamic micro-batch; the actor's when null.", unit="tokens per GPU", scale="double", ge=1
    )
    entropy_from_logits_with_chunking: bool | None = verl("Compute the entropy in pieces: less memory.")
    use_torch_compile: bool | None = verl("Compile the entropy with torch.", key=".fsdp_config.use_torch_compile")
    ulysses_sequence_parallel_size: int | None = verl(
        "GPUs that share one sequence; the actor's when null.", unit="GPUs", scale="double", ge=1
    )
