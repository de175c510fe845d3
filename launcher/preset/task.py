"""The groups of a preset about the task: data and reward."""

from typing import ClassVar, Literal

from launcher.preset.fields import Group, verl


class Data(Group, title="Data"):
    """Prompts, in parquet files of veRL's schema."""

    prefix: ClassVar[str] = "data"

    train: str | list[str] | None = verl("Training file or files.", key=".train_files", kind="path", essential=True)
    val: str | list[str] | None = verl("Validation file or files.", key=".val_files", kind="path", essential=True)
    train_batch_size: int | None = verl("Prompts per step.", unit="prompts", essential=True, scale="double", ge=1)
    val_batch_size: int | None = verl("Prompts per validation batch; null: all.", unit="prompts", scale="double", ge=0)
    gen_batch_size: int | None = verl(
        "Prompts per batch sent to the engine; null: all prompts of the step.", unit="prompts", scale="double", ge=1
    )
    max_prompt_length: int | None = verl("Maximum prompt length.", unit="tokens", essential=True, scale="double", ge=1)
    max_response_length: int | None = verl(
        "Maximum response length; longer responses are truncated.", unit="tokens", essential=True, scale="double", ge=1
    )
    filter_overlong_prompts: bool | None = verl(
        "Drop longer prompts at the start; otherwise veRL truncates them on the left."
    )
    filter_overlong_prompts_workers: int | None = verl("Processes for filtering prompts.", unit="processes", ge=0)
    truncation: Literal["error", "left", "right", "middle"] | None = verl(
        "How older versions of veRL treat longer prompts."
    )
    shuffle: bool | None = verl("Shuffle the training rows.")
    validation_shuffle: bool | None = verl("Shuffle the validation rows.")
    seed: int | None = verl("Seed for shuffling.")
    train_max_samples: int | None = verl("Number of training rows to use; -1: all.", unit="rows", scale="double")
    val_max_samples: int | None = verl("Number of validation rows to use; -1: all.", unit="rows", scale="double")
    dataloader_num_workers: int | None = verl("Data loading processes per data set.", unit="processes", ge=0)
    prompt_key: str | None = verl("Column with the messages.")
    reward_fn_key: str | None = verl("Column with the data source, which selects the reward function in veRL.")
    tokenizer: str | None = verl("Tokenizer of the data set; null: that of the model.", kind="path or name")
    return_raw_chat: bool | None = verl("Keep the messages, which agent loops require.")
    trust_remote_code: bool | None = verl("Run Python code shipped with the tokenizer.")
    use_shm: bool | None = verl("Copy the files to /dev/shm first.")
    custom_cls_path: str | None = verl("Python file with a custom data set class.", key=".custom_cls.path", kind="path")
    custom_cls_name: str | None = verl("Name of the class in that file.", key=".custom_cls.name")


class Reward(Group, title="Reward"):
    """What makes a response good."""

    prefix: ClassVar[str] = "reward"

    function: str | None = verl(
        "With a path: the function in that file; null: compute_score. Without a path: gsm8k or math of veRL.",
        key=".custom_reward_function.name",
        essential=True,
    )
    path: str | None = verl(
        "Python file with a custom reward function.", key=".custom_reward_function.path", kind="path", essential=True
    )
    manager: str | None = verl("Reward manager: naive, dapo, ...", key=".reward_manager.name")
    overlong_buffer: float | None = verl(
        "DAPO: share of the response limit in which a penalty for length grows to 1; 0: no penalty.",
        key="",
        step=0.05,
        ge=0,
        le=1,
    )
    workers: int | None = verl("Processes that compute rewards.", key=".num_workers", unit="processes", ge=1)
    use_model: bool | None = verl("Use a reward model.", key=".reward_model.enable")
    model_path: str | None = verl(
        "Folder or Hugging Face name of the reward model.", key=".reward_model.model_path", kind="path or name"
    )
    model_own_gpus: bool | None = verl(
        "Use separate GPUs for the reward model.", key=".reward_model.enable_resource_pool"
    )
    model_gpus: int | None = verl(
        "Reward model GPUs per machine.", key=".reward_model.n_gpus_per_node", unit="GPUs", scale="double", ge=1
    )
    model_nodes: int | None = verl("Machines for the reward model.", key=".reward_model.nnodes", unit="machines", ge=0)
    sandbox_url: str | None = verl("Service that runs generated code; null: none.", key=".sandbox_fusion.url")
    sandbox_max_concurrent: int | None = verl(
        "Maximum concurrent requests to the service.", key=".sandbox_fusion.max_concurrent", scale="double", ge=1
    )
    sandbox_memory_limit_mb: int | None = verl(
        "Memory limit per piece of code.", key=".sandbox_fusion.memory_limit_mb", unit="MB", scale="double", ge=1
    )
