"""What a run is doing, read from the lines it prints.

veRL announces the stages of its start and prints nothing within a step: after a step line the phase is
"rollout", an estimate, until something that was printed says otherwise.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Phase:
    """A phase for people. `cpu` and `gpu` are usual durations in seconds (the toy preset on two cores; a 0.5-7B
    model), `stall` says what is likely wrong when it prints nothing for much longer."""

    label: str
    cpu: tuple[int, int]
    gpu: tuple[int, int]
    stall: str


_LOADING = (
    "Loading weights is slow from a network disk; on a host short of memory Ray kills workers silently."
)
_ANSWERS = "No answer of the model arrives: a reward function that hangs, or an engine that does."

# The order of the keys is the order in time. Durations: the runs in tests/data/logs and veRL's issue threads.
PHASES = {
    "config": Phase(
        "reading the configuration", (5, 40), (10, 60),
        "Importing torch, vLLM and veRL from a slow disk takes minutes the first time.",
    ),
    "ray": Phase(
        "starting Ray", (5, 20), (10, 60),
        "Ray does not start: too few CPUs, a RAY_ADDRESS of another cluster, or leftovers of an older Ray.",
    ),
    "data": Phase(
        "reading the data", (2, 10), (5, 90),
        "Right after the configuration veRL waits for CPUs, without an error: TransferQueue takes "
        "num_data_storage_units + 1 of them. Set transfer_queue.backend.SimpleStorage.num_data_storage_units=1.",
    ),
    "model": Phase(
        "loading the models", (5, 15), (15, 180),
        "After 'worker group kwargs' veRL waits for GPUs and for 3 CPUs a GPU, without an error: "
        f"trainer.n_gpus_per_node is more than Ray has, or CPUs are short. {_LOADING}",
    ),
    "engine": Phase(
        "starting the rollout engine", (3, 10), (45, 240),
        "The rollout engine compiles kernels and captures CUDA graphs the first time "
        "(rollout.enforce_eager=True skips it); on several GPUs NCCL may wait for a peer (NCCL_P2P_DISABLE=1).",
    ),
    "checkpoint-load": Phase("loading the checkpoint", (1, 5), (1, 120), _LOADING),
    "validate-first": Phase(
        "validating before training", (3, 20), (10, 300),
        "The whole validation set is answered at once (data.val_max_samples makes it smaller). "
        f"A LoRA run can hang here while its weights go to the engine. {_ANSWERS}",
    ),
    "rollout": Phase("rollout: the model answers", (1, 5), (5, 180), _ANSWERS),
    "reward": Phase("scoring the answers", (1, 2), (1, 30), "The reward function is slow or hangs."),
    "update": Phase(
        "updating actor and critic", (1, 5), (5, 180),
        "On several GPUs one rank may have died while the others wait for it in NCCL.",
    ),
    "validate": Phase("validating", (2, 20), (10, 300), _ANSWERS),
    "save": Phase("saving a checkpoint", (1, 5), (5, 180), "The disk is slow or full."),
    "final": Phase("finishing", (2, 20), (5, 60), "Ray or the engine does not shut down."),
}  # fmt: skip
ORDER = tuple(PHASES)
_STARTING = ORDER[: ORDER.index("rollout")]
_PATIENCE = 2.0  # silence, in times of the longest usual duration on a GPU, that counts as a stall
_SHORTEST = 90.0


def stall(phase: str, silent: float) -> str | None:
    """Why a run may stand still that is in `phase` and has printed nothing for `silent` seconds; None if usual."""
    found = PHASES.get(phase)
    if found is None or silent < max(_SHORTEST, _PATIENCE * found.gpu[1]):
        return None
    return f"{found.label} takes {found.gpu[0]}-{found.gpu[1]} s as a rule: no output for {silent:.0f} s. {found.stall}"


# What starts a line, after Ray's prefix and the logger's date, and the phase that it begins. veRL 0.9 trainer
# ("v1") and the older one (0.4-0.8).
_MARKS: tuple[tuple[str, str], ...] = (
    ("restart", r"ray init kwargs: |Started a local Ray instance|Connecting to existing Ray cluster"),
    ("ray", r"\[validate_config\] |TaskRunner hostname: "),
    ("data", r"\{'actor_rollout_ref': |Using dataset class: |dataset len: |filter dataset len: |Total training steps: "
             r"|train and validate dataloader |Size of train dataloader: "),
    ("model", r"colocated worker base class |worker group kwargs: |create worker group |critic model engine init"),
    ("engine", r"actor and ref model engine init|reward loop manager init|override_generation_config: "
               r"|Before building \w+ rollout|Initializing a V\d LLM engine"),
    ("checkpoint-load", r"checkpoint engine manager init|Checkpoint tracker file does not exist|Found checkpoint: "
                        r"|Training from scratch|Load from checkpoint folder: |Setting global step to |Resuming from "),
    ("ready", r"all initialize finished"),
    ("validate", r"test_gen_batch meta info: "),
    ("rollout", r"\(?[\"']Initial validation metrics: |Training Progress: "),
    ("update", r"It took [0-9.]+ seconds to fall asleep"),
    ("save", r"Saving checkpoint to |local_global_step_folder: |\[Rank \d+\] Saved model to "),
    ("final", r"\(?[\"']Final validation metrics: "),
)  # fmt: skip
MARK = re.compile("|".join(f"({pattern})" for _, pattern in _MARKS).encode())


class PhaseTracker:
    """Follows the phase through marks and events; every method returns the phase that begins, or None."""

    def __init__(self) -> None:
        self.phase = ""
        self.validates_first = True  # veRL's default

    def mark(self, match: "re.Match[bytes]") -> str | None:
        """A line that MARK matches."""
        name = _MARKS[(match.lastindex or 1) - 1][0]
        starting = self.phase in _STARTING or not self.phase
        if name == "restart":  # the driver itself: a second run in the same file
            return self._enter("ray") if not starting or self._ahead("ray") else None
        if name == "ready":
            name = "validate-first" if self.validates_first else "rollout"
        elif name == "validate" and starting:
            name = "validate-first"
        if starting:
            # Workers save nothing and update nothing yet; lines of the stages before come late at times.
            return self._enter(name) if name in (*_STARTING, "rollout") and self._ahead(name) else None
        if name == "update":  # the engine sleeps so that the update has its memory
            return self._enter(name) if self.phase == "rollout" else None
        return self._enter(name) if name in ("validate", "save", "final") else None

    def step(self, last: bool) -> str | None:
        """A step line; `last` when no other follows."""
        return self._enter("final" if last else "rollout")

    def rollout_count(self) -> str | None:
        """Counts of running answers: of a validation, when the step's own answers were done with."""
        return self._enter("validate") if self.phase in ("update", "save") else None

    def begin(self) -> str | None:
        return self._enter("config")

    def _ahead(self, phase: str) -> bool:
        return not self.phase or ORDER.index(phase) > ORDER.index(self.phase)

    def _enter(self, phase: str) -> str | None:
        if phase == self.phase:
            return None
        self.phase = phase
        return phase
