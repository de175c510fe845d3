"""Failures while a checkpoint is written or read."""

from launcher.console.causes.entry import Cause, Level

SAVING = r"save_checkpoint|checkpoint_manager\.py:save|_save_checkpoint|torch/serialization\.py:.*save"
LOADING = r"load_checkpoint|_load_checkpoint|resume"
KEEP = "keep fewer checkpoints: trainer.max_actor_ckpt_to_keep=1 trainer.max_critic_ckpt_to_keep=1, trainer.save_freq ↑"

CAUSES = (
    Cause(
        "disk-full-checkpoint",
        "Disk full while saving a checkpoint",
        "A checkpoint needs 12 bytes per parameter, for the actor and again for the critic. Runs never resume from "
        "the incomplete folder, only from the checkpoint before it.",
        (
            "free disk space, then run `ppo-tui resume RUN`",
            KEEP,
            "set trainer.default_local_dir to a folder on a larger disk",
        ),
        raised=r"No space left on device|\[Errno 28\]|PytorchStreamWriter failed|unexpected pos \d+"
        r"|Disk quota exceeded|\[Errno 122\]",
        where=SAVING + r"|PytorchStreamWriter|unexpected pos",
    ),
    Cause(
        "disk-full",
        "Disk full",
        "No disk space is left for temporary files: Ray's session folder (/tmp/ray), spilled objects, caches or logs.",
        (
            "free disk space; /tmp/ray keeps the sessions of old runs",
            "env: RAY_TMPDIR= a short path on a larger disk",
            "env: HF_HOME= a larger disk",
        ),
        raised=r"No space left on device|\[Errno 28\]|OutOfDiskError|Disk quota exceeded|\[Errno 122\]",
        level=Level.GENERAL,
    ),
    Cause(
        "checkpoint-not-writable",
        "Checkpoint folder not writable",
        "trainer.default_local_dir cannot be created or belongs to another user. This fails only at the first save.",
        ("set trainer.default_local_dir to a writable folder",),
        raised=r"(?:FileNotFoundError|PermissionError|NotADirectoryError|FileExistsError"
        r"|OSError): \[Errno (?:2|13|17|20|30)\]",
        where=SAVING,
    ),
    Cause(
        "resume-gpu-count",
        "Checkpoint missing or saved on a different number of GPUs",
        "veRL reads one file per GPU, model_world_size_<GPUs>_rank_<rank>.pt: a checkpoint can only be resumed on "
        "the number of GPUs that saved it.",
        (
            "set trainer.n_gpus_per_node to the value of the run that saved it",
            "check that trainer.resume_from_path is the folder global_step_<k>",
        ),
        raised=r"No such file or directory: '[^']*model_world_size_\d+_rank_\d+\.pt'",
    ),
    Cause(
        "resume-missing",
        "Checkpoint to resume from not found",
        "trainer.resume_from_path or a file in it does not exist.",
        (
            "set trainer.resume_from_path=.../global_step_<k>",
            "or trainer.resume_mode=auto to resume from the newest complete checkpoint",
        ),
        raised=r"FileNotFoundError: .*global_step_\d+|FileNotFoundError: \[Errno 2\]|fsdp_config\.json does not exist",
        where=LOADING,
    ),
    Cause(
        "resume-settings",
        "Conflicting resume settings",
        "resume_mode must be auto, disable or resume_path; resume_path requires a folder named global_step_<k>.",
        (
            "set trainer.resume_mode=resume_path trainer.resume_from_path=.../global_step_<k>",
            "or trainer.resume_mode=auto",
        ),
        raised=r"resume ckpt must |UnboundLocalError: .*global_step_folder",
        line=r"Unknown resume mode ",
    ),
    Cause(
        "checkpoint-damaged",
        "Damaged checkpoint",
        "A file is truncated or empty: the save was interrupted or the disk was full.",
        (
            "resume from an earlier checkpoint: trainer.resume_mode=resume_path "
            "trainer.resume_from_path=.../global_step_<k>",
        ),
        raised=r"PytorchStreamReader failed|failed finding central directory|EOFError: Ran out of input"
        r"|UnpicklingError|not a ZIP archive",
        where=LOADING + r"|PytorchStreamReader|central directory|ZIP archive",
    ),
)
