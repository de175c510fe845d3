"""The groups of a preset about the course of training: trainer and Ray."""

from typing import ClassVar, Literal

from launcher.preset.fields import Group, verl

_V1 = "trainer.v1"


class Trainer(Group, title="Trainer"):
    """Hardware and the course of the run."""

    prefix: ClassVar[str] = "trainer"

    gpus: int = verl(
        "GPUs per machine.", key=".n_gpus_per_node", default=1, unit="GPUs", essential=True, scale="double", ge=1
    )
    nodes: int = verl("Machines.", key=".nnodes", default=1, unit="machines", ge=1)
    device: Literal["cuda", "cpu", "npu"] | None = verl("Device type to train on.")
    epochs: int | None = verl(
        "Passes over the training data.", key=".total_epochs", unit="epochs", essential=True, ge=1
    )
    steps: int | None = verl(
        "Stop after this many steps; null: only epochs count.",
        key=".total_training_steps",
        unit="steps",
        essential=True,
        scale="125",
        ge=1,
    )
    save_every: int | None = verl(
        "Steps between checkpoints; -1: no checkpoints.", key=".save_freq", unit="steps", essential=True, step=5, ge=-1
    )
    validate_every: int | None = verl(
        "Steps between validations; -1: no validation.", key=".test_freq", unit="steps", essential=True, step=5, ge=-1
    )
    validate_first: bool | None = verl("Validate before the first step.", key=".val_before_train")
    val_only: bool | None = verl("Only validate; do not train.")
    critic_warmup: int | None = verl("Initial steps that train only the critic.", unit="steps", ge=0)
    balance_batch: bool | None = verl("Balance tokens across GPUs.")
    max_actor_ckpt_to_keep: int | None = verl(
        "Actor checkpoints to keep; null: all (12 bytes per parameter each).", default=3, unit="checkpoints", ge=1
    )
    max_critic_ckpt_to_keep: int | None = verl(
        "Critic checkpoints to keep; null: all.", default=3, unit="checkpoints", ge=1
    )
    keep_best: int | None = verl(
        "Also keep the checkpoints of this many best validations; null: none.", key="", unit="checkpoints", ge=1
    )
    del_local_ckpt_after_load: bool | None = verl("Delete a checkpoint after resuming from it.")
    default_hdfs_dir: str | None = verl("HDFS folder for a copy of the checkpoints.")
    project: str = verl("Project name in trackers such as wandb.", key=".project_name", default="ppo-tui")
    experiment: str | None = verl("Run name in trackers; null: the name of the run.", key=".experiment_name")
    loggers: list[str] = verl(
        "Additional trackers: wandb, mlflow, tensorboard, swanlab, ...", key=".logger", default=[]
    )
    log_val_generations: int | None = verl("Validation samples to send to the trackers.", unit="samples", ge=0)
    use_v1: bool | None = verl("Use the trainer of veRL 0.9; false: the old trainer, without TransferQueue.")
    mode: Literal["sync", "colocate_async", "separate_async"] | None = verl(
        "Rollout scheduling: wait for the update, overlap with it, or use separate GPUs (rollout.gpus).",
        key=".v1.trainer_mode",
    )
    parameter_sync_step: int | None = verl(
        "separate_async: updates between two weight transfers; a batch is this many mini-batches.",
        key=".v1.separate_async.parameter_sync_step",
        unit="updates",
        ge=1,
    )
    warmup_batches: float | None = verl(
        "separate_async: batches requested ahead; more keeps the rollout busy and makes responses older.",
        key=".v1.separate_async.num_warmup_batches",
        unit="batches",
        step=0.5,
        ge=0,
    )
    colocate_warmup_batches: float | None = verl(
        "colocate_async: batches requested ahead.",
        key=".v1.colocate_async.num_warmup_batches",
        unit="batches",
        step=0.5,
        ge=0,
    )
    hybrid_engine: bool | None = verl(
        "separate_async: false keeps engines off the trainer's GPUs; the other modes require true.",
        key="actor_rollout_ref.hybrid_engine",
    )
    lend_gpus: bool | None = verl(
        "separate_async: let the trainer's GPUs generate while it waits for responses.",
        key=".v1.separate_async.hybrid_rollout.enable_switch",
    )
    lend_until: float | None = verl(
        "separate_async: share of the batch at which lent GPUs return to the trainer.",
        key=".v1.separate_async.hybrid_rollout.switch_threshold_ratio",
        step=0.05,
        gt=0,
        le=1,
    )
    lend_adaptive: bool | None = verl(
        "separate_async: adapt this share to the waiting times.",
        key=".v1.separate_async.hybrid_rollout.adaptive_switch_threshold",
    )
    max_off_policy_threshold: int | None = verl(
        "Asynchronous modes: maximum age of responses, in weight versions.",
        key=".v1.sampler.max_off_policy_threshold",
        unit="steps",
        ge=1,
    )
    max_off_policy_strategy: Literal["drop", "wait"] | None = verl(
        "Older responses: drop them, or wait for those in progress before they get older.",
        key=".v1.sampler.max_off_policy_strategy",
    )
    refill_failed_groups: bool | None = verl(
        "Replace failed prompts with new ones; never ends if the reward function always fails.",
        key=".v1.sampler.sync_refill_failed_groups",
    )
    esi_redundant_time: int | None = verl("Save this long before a rented machine expires.", unit="seconds", ge=0)
    register_timeout: int | None = verl(
        "Timeout for workers to start.", key=".ray_wait_register_center_timeout", unit="seconds", scale="double", ge=1
    )
    nccl_timeout: int | None = verl(
        "Timeout for communication between GPUs.",
        key="actor_rollout_ref.nccl_timeout",
        unit="seconds",
        scale="double",
        ge=1,
    )


class Cluster(Group, title="Cluster"):
    """Ray: its own on this machine, or one that is there already."""

    prefix: ClassVar[str] = "ray_kwargs.ray_init"

    address: str | None = verl(
        "Ray cluster to join (auto or host:port), for submit its dashboard (host:8265); null: start one for this run.",
        key="+.address",
    )
    submit: bool = verl(
        "Submit a Ray job to cluster.address instead of starting the driver locally.", key="", default=False
    )
    cpus: int | None = verl("CPUs available to Ray; null: all.", key=".num_cpus", unit="CPUs", ge=1)
    storage_units: int = verl(
        "TransferQueue processes, one CPU each; veRL's default of 8 hangs on machines with fewer than 12 CPUs.",
        key="transfer_queue.backend.SimpleStorage.num_data_storage_units",
        default=1,
        unit="processes",
        ge=1,
    )
    storage_size: int | None = verl(
        "Maximum number of rows in TransferQueue.",
        key="transfer_queue.backend.SimpleStorage.total_storage_size",
        unit="rows",
        scale="double",
        ge=1,
    )
    timeline: str | None = verl(
        "File for Ray's timeline; null: none.", key="ray_kwargs.timeline_json_file", kind="path"
    )
    py_executable: str | None = verl("Command that starts Python in the workers.", key=".runtime_env.py_executable")
