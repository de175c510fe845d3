"""The groups of a preset about the task: data and reward."""

from typing import ClassVar, Literal

from launcher.preset.fields import Group, verl


class Data(Group, title="Data"):
    """Prompts, in parquet files of veRL's schema."""

    prefix: ClassVar[str] = "data"

    train: str | list[str] | None = verl("Training file or files.", key=".train_files", kind="path", essential=True)
    val: str | list[str] | None = verl("Validation file or files.", key=".val_files", kind="path", essential=True)
    train_batch_size: int | None = verl("Prompts for one step.", unit="prompts", essential=True, scale="double", ge=1)
    val_batch_size: int | None = verl("Prompts validated at once; all when null.", unit="prompts", scale="double", ge=1)
    gen_batch_size: int | None = verl(
        "Prompts sent to the engine at once; a whole step's when null.", unit="prompts", scale="double", ge=1
    )
    max_prompt_length: int | None = verl("Longest prompt.", unit="tokens", essential=True, scale="double", ge=1)
    max_response_length: int | None = verl(
        "Longest response; longer ones are cut off.", unit="tokens", essential=True, scale="double", ge=1
    )
    filter_overlong_prompts: bool | None = verl(
        "Drop longer prompts at the start; otherwise veRL cuts them on the left."
    )
    filter_overlong_prompts_workers: int | None = verl("Processes that look for them.", unit="processes", ge=1)
    truncation: Literal["error", "left", "right", "middle"] | None = verl(
        "What older versions do with a longer prompt."
    )
    shuffle: bool | None = verl("Shuffle the training rows.")
    validation_shuffle: bool | None = verl("Shuffle the validation rows.")
    seed: int | None = verl("Seed of that shuffle.")
    train_max_samples: int | None = verl("Use that many training rows; -1 is all.", unit="rows", scale="double", ge=-1)
    val_max_samples: int | None = verl("Use that many validation rows; -1 is all.", unit="rows", scale="double", ge=-1)
    dataloader_num_workers: int | None = verl("Processes that read data, each for both sets.", unit="processes", ge=0)
    prompt_key: str | None = verl("Column that holds the messages.")
    reward_fn_key: str | None = verl("Column that names the source, by which veRL chooses its reward function.")
    tokenizer: str | None = verl("Tokenizer of the data set; the model's when null.", kind="path or name")
    return_raw_chat: bool | None = verl("Hand the messages on, which agent loops need.")
    trust_remote_code: bool | None = verl("Run Python code that comes with the tokenizer.")
    use_shm: bool | None = verl("Copy the files to /dev/shm first.")
    custom_cls_path: str | None = verl(
        "Python file with a data set class of your own.", key=".custom_cls.path", kind="path"
    )
    custom_cls_name: str | None = verl("The class in it.", key=".custom_cls.name")


class Reward(Group, title="Reward"):
    """What makes a response good."""

    prefix: ClassVar[str] = "reward"

    function: str | None = verl(
        "With a path: the function in that file, compute_score when null. Without: veRL's own gsm8k or math.",
        key=".custom_reward_function.name",
        essential=True,
    )
    path: str | None = verl(
        "Python file with a reward function of your own.",
        key=".custom_reward_function.path",
        kind="path",
        essential=True,
    )
    manager: str | None = verl("How scores are gathered: naive, dapo, ...", key=".reward_manager.name")
    workers: int | None = verl("Processes that score.", key=".num_workers", unit="processes", ge=1)
    use_model: bool | None = verl("Score with a reward model.", key=".reward_model.enable")
    model_path: str | None = verl(
        "Folder or Hugging Face name of that model.", key=".reward_model.model_path", kind="path or name"
    )
    model_own_gpus: bool | None = verl(
        "Give the reward model GPUs of its own.", key=".reward_model.enable_resource_pool"
    )
    model_gpus: int | None = verl(
        "How many on each machine.", key=".reward_model.n_gpus_per_node", unit="GPUs", scale="double", ge=1
    )
    model_nodes: int | None = verl("On how many machines.", key=".reward_model.nnodes", unit="machines", ge=0)
    sandbox_url: str | None = verl("Service that runs generated code; none when null.", key=".sandbox_fusion.url")
    sandbox_max_concurrent: int | None = verl(
        "Requests to it at the same time.", key=".sandbox_fusion.max_concurrent", scale="double", ge=1
    )
    sandbox_memory_limit_mb: int | None = verl(
        "Memory for each piece of code.", key=".sandbox_fusion.memory_limit_mb", unit="MB", scale="double", ge=1
    )
