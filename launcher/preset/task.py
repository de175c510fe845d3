"""The groups of a preset about data, rollouts, rewards, the course of training, and Ray."""

from __future__ import annotations

from typing import Literal

from launcher.preset.fields import Group, verl

_ROLLOUT = "actor_rollout_ref.rollout"


class Data(Group):
    """Prompts, in parquet files of veRL's schema."""

    train: str | list[str] | None = verl("data.train_files", "Training file or files.", kind="path")
    val: str | list[str] | None = verl("data.val_files", "Validation file or files.", kind="path")
    train_batch_size: int | None = verl(
        "data.train_batch_size", "Prompts for one step.", unit="prompts", ge=1
    )
    val_batch_size: int | None = verl(
        "data.val_batch_size", "Prompts validated at once; all when null.", unit="prompts", ge=1
    )
    max_prompt_length: int | None = verl("data.max_prompt_length", "Longest prompt.", unit="tokens", ge=1)
    max_response_length: int | None = verl(
        "data.max_response_length", "Longest response; longer ones are cut off.", unit="tokens", ge=1
    )
    filter_overlong_prompts: bool | None = verl(
        "data.filter_overlong_prompts",
        "Drop longer prompts at the start; otherwise veRL cuts them on the left.",
    )
    truncation: Literal["error", "left", "right", "middle"] | None = verl(
        "data.truncation", "What older versions do with a longer prompt."
    )
    shuffle: bool | None = verl("data.shuffle", "Shuffle the training rows.")
    seed: int | None = verl("data.seed", "Seed of that shuffle.")
    train_max_samples: int | None = verl(
        "data.train_max_samples", "Use that many training rows; -1 is all.", ge=-1
    )
    val_max_samples: int | None = verl(
        "data.val_max_samples", "Use that many validation rows; -1 is all.", ge=-1
    )
    dataloader_num_workers: int | None = verl(
        "data.dataloader_num_workers", "Processes that read data.", ge=0
    )
    prompt_key: str | None = verl("data.prompt_key", "Column that holds the messages.")


class Rollout(Group):
    """The engine that writes the responses."""

    engine: str = verl(f"{_ROLLOUT}.name", "Inference engine: vllm, sglang, hf (our CPU platform).", "vllm")
    n: int | None = verl(f"{_ROLLOUT}.n", "Responses to each prompt: 1 for PPO, 4 to 16 for GRPO.", ge=1)
    temperature: float | None = verl(
        f"{_ROLLOUT}.temperature", "Sampling temperature; 0 would teach nothing.", gt=0
    )
    top_p: float | None = verl(f"{_ROLLOUT}.top_p", "Nucleus sampling.", gt=0, le=1)
    top_k: int | None = verl(f"{_ROLLOUT}.top_k", "Sample from that many tokens; -1 is all.", ge=-1)
    gpu_memory_utilization: float | None = verl(
        f"{_ROLLOUT}.gpu_memory_utilization", "Share of GPU memory the engine reserves.", gt=0, lt=1
    )
    tensor_model_parallel_size: int = verl(
        f"{_ROLLOUT}.tensor_model_parallel_size", "GPUs that share one engine.", 1, unit="GPUs", ge=1
    )
    max_num_batched_tokens: int | None = verl(
        f"{_ROLLOUT}.max_num_batched_tokens", "Tokens in one pass of the engine.", unit="tokens", ge=1
    )
    max_model_len: int | None = verl(
        f"{_ROLLOUT}.max_model_len",
        "Longest prompt and response together; the model's when null.",
        unit="tokens",
        ge=1,
    )
    max_num_seqs: int | None = verl(f"{_ROLLOUT}.max_num_seqs", "Responses written at once.", ge=1)
    enforce_eager: bool | None = verl(
        f"{_ROLLOUT}.enforce_eager", "No CUDA graphs: starts sooner, needs less memory, writes slower."
    )
    free_cache_engine: bool | None = verl(
        f"{_ROLLOUT}.free_cache_engine", "Give the engine's memory back during updates."
    )
    enable_chunked_prefill: bool | None = verl(
        f"{_ROLLOUT}.enable_chunked_prefill", "Prefill long prompts in pieces."
    )
    load_format: str | None = verl(
        f"{_ROLLOUT}.load_format", "How the engine gets its first weights; safetensors with LoRA."
    )
    layered_summon: bool | None = verl(
        f"{_ROLLOUT}.layered_summon", "Send the weights layer by layer: less memory."
    )
    dtype: str | None = verl(f"{_ROLLOUT}.dtype", "Type of the engine's weights.")
    calculate_log_probs: bool | None = verl(
        f"{_ROLLOUT}.calculate_log_probs",
        "Keep the engine's own probabilities, to compare them with the trainer's.",
    )
    log_prob_micro_batch_size_per_gpu: int | None = verl(
        f"{_ROLLOUT}.log_prob_micro_batch_size_per_gpu",
        "Responses for one log-probability pass; needed unless dynamic.",
        unit="responses",
        ge=1,
    )
    log_prob_max_token_len_per_gpu: int | None = verl(
        f"{_ROLLOUT}.log_prob_max_token_len_per_gpu",
        "Tokens in one dynamic pass; the actor's when null.",
        unit="tokens per GPU",
        ge=1,
    )
    agent_workers: int | None = verl(f"{_ROLLOUT}.agent.num_workers", "Processes that feed the engine.", ge=1)
    val_n: int | None = verl(f"{_ROLLOUT}.val_kwargs.n", "Responses to each validation prompt.", ge=1)
    val_do_sample: bool | None = verl(
        f"{_ROLLOUT}.val_kwargs.do_sample", "Sample in validation instead of taking the likeliest token."
    )
    val_temperature: float | None = verl(
        f"{_ROLLOUT}.val_kwargs.temperature", "Temperature in validation.", ge=0
    )


class Reward(Group):
    """What makes a response good."""

    function: str | None = verl(
        "reward.custom_reward_function.name",
        "With a path: the function in that file, compute_score when null. Without: veRL's own gsm8k or math.",
    )
    path: str | None = verl(
        "reward.custom_reward_function.path", "Python file with a reward function of your own.", kind="path"
    )
    manager: str | None = verl("reward.reward_manager.name", "How scores are gathered: naive, dapo, ...")
    workers: int | None = verl("reward.num_workers", "Processes that score.", ge=1)


class Trainer(Group):
    """Hardware and the course of the run."""

    gpus: int = verl("trainer.n_gpus_per_node", "GPUs on each machine.", 1, unit="GPUs", ge=1)
    nodes: int = verl("trainer.nnodes", "Machines.", 1, ge=1)
    device: Literal["cuda", "cpu", "npu"] | None = verl("trainer.device", "What the model is trained on.")
    epochs: int | None = verl("trainer.total_epochs", "Passes over the training data.", ge=1)
    steps: int | None = verl(
        "trainer.total_training_steps",
        "Stop after that many steps; only the epochs count when null.",
        unit="steps",
        ge=1,
    )
    save_every: int | None = verl(
        "trainer.save_freq", "Checkpoint every so many steps; -1 never.", unit="steps", ge=-1
    )
    validate_every: int | None = verl(
        "trainer.test_freq", "Validation every so many steps; -1 never.", unit="steps", ge=-1
    )
    validate_first: bool | None = verl("trainer.val_before_train", "Validate before the first step.")
    critic_warmup: int | None = verl(
        "trainer.critic_warmup", "Steps in which only the critic learns.", unit="steps", ge=0
    )
    balance_batch: bool | None = verl("trainer.balance_batch", "Give each GPU the same number of tokens.")
    max_actor_ckpt_to_keep: int | None = verl(
        "trainer.max_actor_ckpt_to_keep",
        "Actor checkpoints to keep; null keeps all (12 bytes a parameter each).",
        3,
        ge=1,
    )
    max_critic_ckpt_to_keep: int | None = verl(
        "trainer.max_critic_ckpt_to_keep", "Critic checkpoints to keep; null keeps all.", 3, ge=1
    )
    project: str = verl("trainer.project_name", "Project name in trackers such as wandb.", "ppo-tui")
    experiment: str | None = verl(
        "trainer.experiment_name", "Name of the run in trackers; the run's own when null."
    )
    loggers: list[str] = verl(
        "trainer.logger", "Trackers besides console and file: wandb, mlflow, tensorboard, swanlab, ...", []
    )
    log_val_generations: int | None = verl(
        "trainer.log_val_generations", "Validation samples sent to the trackers.", ge=0
    )


class Cluster(Group):
    """Ray: its own on this machine, or one that is there already."""

    address: str | None = verl(
        "+ray_kwargs.ray_init.address",
        "Ray cluster to join (auto, or host:port); null starts one for this run.",
    )
    submit: bool = verl("", "Submit as a Ray job instead of starting the driver here.", False)
    cpus: int | None = verl(
        "ray_kwargs.ray_init.num_cpus", "CPUs that Ray may count on; all when null.", ge=1
    )
    storage_units: int = verl(
        "transfer_queue.backend.SimpleStorage.num_data_storage_units",
        "TransferQueue processes, one CPU each; veRL's 8 let a machine with fewer than 12 CPUs hang.",
        1,
        ge=1,
    )
