"""The groups of a preset about the course of training: trainer and Ray."""

from __future__ import annotations

from typing import Literal

from launcher.preset.fields import Group, verl

_V1 = "trainer.v1"


class Trainer(Group, title="Trainer"):
    """Hardware and the course of the run."""

    gpus: int = verl(
        "trainer.n_gpus_per_node", "GPUs on each machine.", 1, unit="GPUs", essential=True, scale="double", ge=1
    )
    nodes: int = verl("trainer.nnodes", "Machines.", 1, unit="machines", ge=1)
    device: Literal["cuda", "cpu", "npu"] | None = verl("trainer.device", "What the model is trained on.")
    epochs: int | None = verl(
        "trainer.total_epochs", "Passes over the training data.", unit="epochs", essential=True, ge=1
    )
    steps: int | None = verl(
        "trainer.total_training_steps",
        "Stop after that many steps; only the epochs count when null.",
        unit="steps",
        essential=True,
        scale="125",
        ge=1,
    )
    save_every: int | None = verl(
        "trainer.save_freq", "Checkpoint every so many steps; -1 never.", unit="steps", essential=True, step=5, ge=-1
    )
    validate_every: int | None = verl(
        "trainer.test_freq", "Validation every so many steps; -1 never.", unit="steps", essential=True, step=5, ge=-1
    )
    validate_first: bool | None = verl("trainer.val_before_train", "Validate before the first step.")
    val_only: bool | None = verl("trainer.val_only", "Validate, and train nothing.")
    critic_warmup: int | None = verl(
        "trainer.critic_warmup", "Steps in which only the critic learns.", unit="steps", ge=0
    )
    balance_batch: bool | None = verl("trainer.balance_batch", "Give each GPU the same number of tokens.")
    max_actor_ckpt_to_keep: int | None = verl(
        "trainer.max_actor_ckpt_to_keep",
        "Actor checkpoints to keep; null keeps all (12 bytes a parameter each).",
        3,
        unit="checkpoints",
        ge=1,
    )
    max_critic_ckpt_to_keep: int | None = verl(
        "trainer.max_critic_ckpt_to_keep", "Critic checkpoints to keep; null keeps all.", 3, unit="checkpoints", ge=1
    )
    del_local_ckpt_after_load: bool | None = verl(
        "trainer.del_local_ckpt_after_load", "Remove a checkpoint once it was resumed from."
    )
    default_hdfs_dir: str | None = verl("trainer.default_hdfs_dir", "HDFS folder that gets the checkpoints too.")
    project: str = verl("trainer.project_name", "Project name in trackers such as wandb.", "ppo-tui")
    experiment: str | None = verl("trainer.experiment_name", "Name of the run in trackers; the run's own when null.")
    loggers: list[str] = verl(
        "trainer.logger", "Trackers besides console and file: wandb, mlflow, tensorboard, swanlab, ...", []
    )
    log_val_generations: int | None = verl(
        "trainer.log_val_generations", "Validation samples sent to the trackers.", unit="samples", ge=0
    )
    use_v1: bool | None = verl(
        "trainer.use_v1", "veRL 0.9's trainer; false is the old one, which needs no TransferQueue."
    )
    mode: Literal["sync", "colocate_async", "separate_async"] | None = verl(
        f"{_V1}.trainer_mode", "Whether rollouts wait for the update, overlap with it, or have GPUs of their own."
    )
    parameter_sync_step: int | None = verl(
        f"{_V1}.separate_async.parameter_sync_step",
        "Steps between new weights for a separate engine.",
        unit="steps",
        ge=1,
    )
    max_off_policy_threshold: int | None = verl(
        f"{_V1}.sampler.max_off_policy_threshold", "Oldest weights whose responses count.", unit="steps", ge=0
    )
    max_off_policy_strategy: str | None = verl(
        f"{_V1}.sampler.max_off_policy_strategy", "What becomes of older responses: drop or mask."
    )
    refill_failed_groups: bool | None = verl(
        f"{_V1}.sampler.sync_refill_failed_groups",
        "Draw other prompts for failed ones; never ends when the reward function always fails.",
    )
    esi_redundant_time: int | None = verl(
        "trainer.esi_redundant_time", "Save that long before a rented machine ends.", unit="seconds", ge=0
    )
    register_timeout: int | None = verl(
        "trainer.ray_wait_register_center_timeout",
        "How long workers are waited for at the start.",
        unit="seconds",
        scale="double",
        ge=1,
    )
    nccl_timeout: int | None = verl(
        "actor_rollout_ref.nccl_timeout", "How long GPUs wait for each other.", unit="seconds", scale="double", ge=1
    )


class Cluster(Group, title="Cluster"):
    """Ray: its own on this machine, or one that is there already."""

    address: str | None = verl(
        "+ray_kwargs.ray_init.address", "Ray cluster to join (auto, or host:port); null starts one for this run."
    )
    submit: bool = verl("", "Submit as a Ray job instead of starting the driver here.", False)
    cpus: int | None = verl(
        "ray_kwargs.ray_init.num_cpus", "CPUs that Ray may count on; all when null.", unit="CPUs", ge=1
    )
    storage_units: int = verl(
        "transfer_queue.backend.SimpleStorage.num_data_storage_units",
        "TransferQueue processes, one CPU each; veRL's 8 let a machine with fewer than 12 CPUs hang.",
        1,
        unit="processes",
        ge=1,
    )
    storage_size: int | None = verl(
        "transfer_queue.backend.SimpleStorage.total_storage_size",
        "Rows that TransferQueue holds at most.",
        unit="rows",
        scale="double",
        ge=1,
    )
    timeline: str | None = verl(
        "ray_kwargs.timeline_json_file", "File for Ray's timeline; none when null.", kind="path"
    )
    py_executable: str | None = verl(
        "ray_kwargs.ray_init.runtime_env.py_executable", "Command that starts the workers' Python."
    )
