"""The groups of a preset about the task: data and reward."""

from __future__ import annotations

from typing import Literal

from launcher.preset.fields import Group, verl


class Data(Group, title="Data"):
    """Prompts, in parquet files of veRL's schema."""

    train: str | list[str] | None = verl("data.train_files", "Training file or files.", kind="path", essential=True)
    val: str | list[str] | None = verl("data.val_files", "Validation file or files.", kind="path", essential=True)
    train_batch_size: int | None = verl(
        "data.train_batch_size", "Prompts for one step.", unit="prompts", essential=True, scale="double", ge=1
    )
    val_batch_size: int | None = verl(
        "data.val_batch_size", "Prompts validated at once; all when null.", unit="prompts", scale="double", ge=1
    )
    gen_batch_size: int | None = verl(
        "data.gen_batch_size",
        "Prompts sent to the engine at once; a whole step's when null.",
        unit="prompts",
        scale="double",
        ge=1,
    )
    max_prompt_length: int | None = verl(
        "data.max_prompt_length", "Longest prompt.", unit="tokens", essential=True, scale="double", ge=1
    )
    max_response_length: int | None = verl(
        "data.max_response_length",
        "Longest response; longer ones are cut off.",
        unit="tokens",
        essential=True,
        scale="double",
        ge=1,
    )
    filter_overlong_prompts: bool | None = verl(
        "data.filter_overlong_prompts", "Drop longer prompts at the start; otherwise veRL cuts them on the left."
    )
    filter_overlong_prompts_workers: int | None = verl(
        "data.filter_overlong_prompts_workers", "Processes that look for them.", unit="processes", ge=1
    )
    truncation: Literal["error", "left", "right", "middle"] | None = verl(
        "data.truncation", "What older versions do with a longer prompt."
    )
    shuffle: bool | None = verl("data.shuffle", "Shuffle the training rows.")
    validation_shuffle: bool | None = verl("data.validation_shuffle", "Shuffle the validation rows.")
    seed: int | None = verl("data.seed", "Seed of that shuffle.")
    train_max_samples: int | None = verl(
        "data.train_max_samples", "Use that many training rows; -1 is all.", unit="rows", scale="double", ge=-1
    )
    val_max_samples: int | None = verl(
        "data.val_max_samples", "Use that many validation rows; -1 is all.", unit="rows", scale="double", ge=-1
    )
    dataloader_num_workers: int | None = verl(
        "data.dataloader_num_workers", "Processes that read data, each for both sets.", unit="processes", ge=0
    )
    prompt_key: str | None = verl("data.prompt_key", "Column that holds the messages.")
    reward_fn_key: str | None = verl(
        "data.reward_fn_key", "Column that names the source, by which veRL chooses its reward function."
    )
    tokenizer: str | None = verl(
        "data.tokenizer", "Tokenizer of the data set; the model's when null.", kind="path or name"
    )
    return_raw_chat: bool | None = verl("data.return_raw_chat", "Hand the messages on, which agent loops need.")
    trust_remote_code: bool | None = verl("data.trust_remote_code", "Run Python code that comes with the tokenizer.")
    use_shm: bool | None = verl("data.use_shm", "Copy the files to /dev/shm first.")
    custom_cls_path: str | None = verl(
        "data.custom_cls.path", "Python file with a data set class of your own.", kind="path"
    )
    custom_cls_name: str | None = verl("data.custom_cls.name", "The class in it.")


class Reward(Group, title="Reward"):
    """What makes a response good."""

    function: str | None = verl(
        "reward.custom_reward_function.name",
        "With a path: the function in that file, compute_score when null. Without: veRL's own gsm8k or math.",
        essential=True,
    )
    path: str | None = verl(
        "reward.custom_reward_function.path",
        "Python file with a reward function of your own.",
        kind="path",
        essential=True,
    )
    manager: str | None = verl("reward.reward_manager.name", "How scores are gathered: naive, dapo, ...")
    workers: int | None = verl("reward.num_workers", "Processes that score.", unit="processes", ge=1)
    use_model: bool | None = verl("reward.reward_model.enable", "Score with a reward model.")
    model_path: str | None = verl(
        "reward.reward_model.model_path", "Folder or Hugging Face name of that model.", kind="path or name"
    )
    model_own_gpus: bool | None = verl(
        "reward.reward_model.enable_resource_pool", "Give the reward model GPUs of its own."
    )
    model_gpus: int | None = verl(
        "reward.reward_model.n_gpus_per_node", "How many on each machine.", unit="GPUs", scale="double", ge=1
    )
    model_nodes: int | None = verl("reward.reward_model.nnodes", "On how many machines.", unit="machines", ge=0)
    sandbox_url: str | None = verl("reward.sandbox_fusion.url", "Service that runs generated code; none when null.")
    sandbox_max_concurrent: int | None = verl(
        "reward.sandbox_fusion.max_concurrent", "Requests to it at the same time.", scale="double", ge=1
    )
    sandbox_memory_limit_mb: int | None = verl(
        "reward.sandbox_fusion.memory_limit_mb", "Memory for each piece of code.", unit="MB", scale="double", ge=1
    )
