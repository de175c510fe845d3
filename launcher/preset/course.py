"""The groups of a preset about the course of training: trainer and Ray."""

from typing import ClassVar, Literal

from launcher.preset.fields import Group, verl

_V1 = "trainer.v1"


class Trainer(Group, title="Trainer"):
    """Hardware and the course of the run."""

    prefix: ClassVar[str] = "trainer"

    gpus: int = verl(
        "GPUs on each machine.", key=".n_gpus_per_node", default=1, unit="GPUs", essential=True, scale="double", ge=1
    )
    nodes: int = verl("Machines.", key=".nnodes", default=1, unit="machines", ge=1)
    device: Literal["cuda", "cpu", "npu"] | None = verl("What the model is trained on.")
    epochs: int | None = verl(
        "Passes over the training data.", key=".total_epochs", unit="epochs", essential=True, ge=1
    )
    steps: int | None = verl(
        "Stop after that many steps; only the epochs count when null.",
        key=".total_training_steps",
        unit="steps",
        essential=True,
        scale="125",
        ge=1,
    )
    save_every: int | None = verl(
        "Checkpoint every so many steps; -1 never.", key=".save_freq", unit="steps", essential=True, step=5, ge=-1
    )
    validate_every: int | None = verl(
        "Validation every so many steps; -1 never.", key=".test_freq", unit="steps", essential=True, step=5, ge=-1
    )
    validate_first: bool | None = verl("Validate before the first step.", key=".val_before_train")
    val_only: bool | None = verl("Validate, and train nothing.")
    critic_warmup: int | None = verl("Steps in which only the critic learns.", unit="steps", ge=0)
    balance_batch: bool | None = verl("Give each GPU the same number of tokens.")
    max_actor_ckpt_to_keep: int | None = verl(
        "Actor checkpoints to keep; null keeps all (12 bytes a parameter each).", default=3, unit="checkpoints", ge=1
    )
    max_critic_ckpt_to_keep: int | None = verl(
        "Critic checkpoints to keep; null keeps all.", default=3, unit="checkpoints", ge=1
    )
    del_local_ckpt_after_load: bool | None = verl("Remove a checkpoint once it was resumed from.")
    default_hdfs_dir: str | None = verl("HDFS folder that gets the checkpoints too.")
    project: str = verl("Project name in trackers such as wandb.", key=".project_name", default="ppo-tui")
    experiment: str | None = verl("Name of the run in trackers; the run's own when null.", key=".experiment_name")
    loggers: list[str] = verl(
        "Trackers besides console and file: wandb, mlflow, tensorboard, swanlab, ...", key=".logger", default=[]
    )
    log_val_generations: int | None = verl("Validation samples sent to the trackers.", unit="samples", ge=0)
    use_v1: bool | None = verl("veRL 0.9's trainer; false is the old one, which needs no TransferQueue.")
    mode: Literal["sync", "colocate_async", "separate_async"] | None = verl(
        "Whether rollouts wait for the update, overlap with it, or have GPUs of their own.", key=".v1.trainer_mode"
    )
    parameter_sync_step: int | None = verl(
        "Steps between new weights for a separate engine.",
        key=".v1.separate_async.parameter_sync_step",
        unit="steps",
        ge=1,
    )
    max_off_policy_threshold: int | None = verl(
        "Oldest weights whose responses count.", key=".v1.sampler.max_off_policy_threshold", unit="steps", ge=0
    )
    max_off_policy_strategy: str | None = verl(
        "What becomes of older responses: drop or mask.", key=".v1.sampler.max_off_policy_strategy"
    )
    refill_failed_groups: bool | None = verl(
        "Draw other prompts for failed ones; never ends when the reward function always fails.",
        key=".v1.sampler.sync_refill_failed_groups",
    )
    esi_redundant_time: int | None = verl("Save that long before a rented machine ends.", unit="seconds", ge=0)
    register_timeout: int | None = verl(
        "How long workers are waited for at the start.",
        key=".ray_wait_register_center_timeout",
        unit="seconds",
        scale="double",
        ge=1,
    )
    nccl_timeout: int | None = verl(
        "How long GPUs wait for each other.", key="actor_rollout_ref.nccl_timeout", unit="seconds", scale="double", ge=1
    )


class Cluster(Group, title="Cluster"):
    """Ray: its own on this machine, or one that is there already."""

    prefix: ClassVar[str] = "ray_kwargs.ray_init"

    address: str | None = verl(
        "Ray cluster to join (auto, or host:port); null starts one for this run.", key="+.address"
    )
    submit: bool = verl("Submit as a Ray job instead of starting the driver here.", key="", default=False)
    cpus: int | None = verl("CPUs that Ray may count on; all when null.", key=".num_cpus", unit="CPUs", ge=1)
    storage_units: int = verl(
        "TransferQueue processes, one CPU each; veRL's 8 let a machine with fewer than 12 CPUs hang.",
        key="transfer_queue.backend.SimpleStorage.num_data_storage_units",
        default=1,
        unit="processes",
        ge=1,
    )
    storage_size: int | None = verl(
        "Rows that TransferQueue holds at most.",
        key="transfer_queue.backend.SimpleStorage.total_storage_size",
        unit="rows",
        scale="double",
        ge=1,
    )
    timeline: str | None = verl(
        "File for Ray's timeline; none when null.", key="ray_kwargs.timeline_json_file", kind="path"
    )
    py_executable: str | None = verl("Command that starts the workers' Python.", key=".runtime_env.py_executable")
