"""Failures while a checkpoint is written or read."""

from launcher.console.causes.entry import Cause, Level

SAVING = r"save_checkpoint|checkpoint_manager\.py:save|_save_checkpoint|torch/serialization\.py:.*save"
LOADING = r"load_checkpoint|_load_checkpoint|resume"
KEEP = "keep fewer: trainer.max_actor_ckpt_to_keep=1 trainer.max_critic_ckpt_to_keep=1, trainer.save_freq ↑"

CAUSES = (
    Cause(
        "disk-full-checkpoint",
        "The disk is full: the checkpoint could not be written",
        "A checkpoint needs 12 bytes a parameter, for the actor and again for the critic. The unfinished folder is "
        "never resumed; the one before it is.",
        ("free space, then `ppo-tui resume RUN`", KEEP, "trainer.default_local_dir= a larger disk"),
        raised=r"No space left on device|\[Errno 28\]|PytorchStreamWriter failed|unexpected pos \d+"
        r"|Disk quota exceeded|\[Errno 122\]",
        where=SAVING + r"|PytorchStreamWriter|unexpected pos",
    ),
    Cause(
        "disk-full",
        "A disk is full",
        "No space is left for temporary files: Ray's session folder (/tmp/ray), spilled objects, caches or logs.",
        (
            "free space; /tmp/ray keeps the sessions of old runs",
            "env: RAY_TMPDIR= a short path on a larger disk",
            "env: HF_HOME= a larger disk",
        ),
        raised=r"No space left on device|\[Errno 28\]|OutOfDiskError|Disk quota exceeded|\[Errno 122\]",
        level=Level.GENERAL,
    ),
    Cause(
        "checkpoint-not-writable",
        "The checkpoint folder cannot be written",
        "trainer.default_local_dir cannot be created, or belongs to someone else. It shows only at the first save.",
        ("trainer.default_local_dir= a folder that you may write",),
        raised=r"(?:FileNotFoundError|PermissionError|NotADirectoryError|FileExistsError"
        r"|OSError): \[Errno (?:2|13|17|20|30)\]",
        where=SAVING,
    ),
    Cause(
        "resume-gpu-count",
        "The checkpoint was saved on another number of GPUs, or is not there",
        "veRL looks for one file a GPU, model_world_size_<GPUs>_rank_<rank>.pt: a checkpoint can only be resumed on "
        "the number of GPUs that saved it.",
        (
            "trainer.n_gpus_per_node= as in the run that saved it",
            "check trainer.resume_from_path: the folder global_step_<k>",
        ),
        raised=r"No such file or directory: '[^']*model_world_size_\d+_rank_\d+\.pt'",
    ),
    Cause(
        "resume-missing",
        "The checkpoint to resume from was not found",
        "trainer.resume_from_path, or a file in it, does not exist.",
        ("trainer.resume_from_path=.../global_step_<k>", "trainer.resume_mode=auto takes the newest complete one"),
        raised=r"FileNotFoundError: .*global_step_\d+|FileNotFoundError: \[Errno 2\]|fsdp_config\.json does not exist",
        where=LOADING,
    ),
    Cause(
        "resume-settings",
        "The settings for resuming contradict each other",
        "resume_mode must be auto, disable or resume_path, and resume_path needs a folder named global_step_<k>.",
        ("trainer.resume_mode=resume_path trainer.resume_from_path=.../global_step_<k>", "or trainer.resume_mode=auto"),
        raised=r"resume ckpt must |UnboundLocalError: .*global_step_folder",
        line=r"Unknown resume mode ",
    ),
    Cause(
        "checkpoint-damaged",
        "The checkpoint is damaged",
        "A file is cut off or empty: the save was interrupted, or the disk was full.",
        ("resume from an earlier one: trainer.resume_mode=resume_path trainer.resume_from_path=.../global_step_<k>",),
        raised=r"PytorchStreamReader failed|failed finding central directory|EOFError: Ran out of input"
        r"|UnpicklingError|not a ZIP archive",
        where=LOADING + r"|PytorchStreamReader|central directory|ZIP archive",
    ),
)
