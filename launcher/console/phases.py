"""What a run is doing, read from the lines it prints.

veRL announces the stages of its start and prints nothing within a step: after a step line the phase is
"rollout", an estimate, until something that was printed says otherwise.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from launcher.core.format import duration


@dataclass(frozen=True)
class Phase:
    """A phase for people.

    `cpu` and `gpu` are usual durations in seconds: of the toy preset on two idle or busy cores, of models up to 7B.
    `stall` says what is likely wrong when a run prints nothing for much longer.
    """

    label: str
    cpu: tuple[int, int]
    gpu: tuple[int, int]
    stall: str


_LOADING = "Loading weights from a network disk is slow; Ray kills workers silently on a host short of memory."
_ANSWERS = "No responses arrive: the reward function or the engine may hang."

# The order of the keys is the order in time. The lower durations on a GPU are those of our runs in tests/data
# (135M parameters), the upper ones are estimates for 7B.
PHASES = {
    "config": Phase(
        "reading the configuration",
        (2, 15),
        (10, 60),
        "Importing torch, vLLM and veRL from a slow disk takes minutes the first time.",
    ),
    "ray": Phase(
        "starting Ray",
        (8, 35),
        (10, 60),
        "Ray does not start: too few CPUs, a RAY_ADDRESS of another cluster, or leftovers of an older Ray.",
    ),
    "data": Phase(
        "reading the data",
        (1, 3),
        (5, 45),
        "After the configuration veRL waits for CPUs, without an error: TransferQueue reserves 9; set "
        "transfer_queue.backend.SimpleStorage.num_data_storage_units=1 to reserve 2.",
    ),
    "model": Phase(
        "loading the models",
        (1, 5),
        (15, 180),
        "After 'worker group kwargs' veRL waits for GPUs and for 3 CPUs per GPU, without an error: "
        f"trainer.n_gpus_per_node exceeds Ray's GPUs, or CPUs are short. {_LOADING}",
    ),
    "engine": Phase(
        "starting the rollout engine",
        (1, 2),
        (45, 240),
        "At first the engine compiles kernels and captures CUDA graphs (not with rollout.enforce_eager); on "
        "several GPUs NCCL may wait for a peer (NCCL_P2P_DISABLE=1 helps).",
    ),
    "checkpoint-load": Phase("looking for a checkpoint to load", (1, 5), (1, 120), _LOADING),
    "validate-first": Phase(
        "validating before training",
        (2, 6),
        (10, 150),
        "The engine generates responses for the whole validation set at once (set data.val_max_samples to reduce "
        f"it). A LoRA run can hang here while it sends weights to the engine. {_ANSWERS}",
    ),
    "rollout": Phase("generating responses", (1, 5), (5, 180), _ANSWERS),
    "reward": Phase("scoring the responses", (1, 2), (1, 30), "The reward function is slow or hangs."),
    "update": Phase(
        "updating actor and critic",
        (1, 5),
        (5, 180),
        "On several GPUs one rank may have failed while the others wait for it in NCCL.",
    ),
    "validate": Phase("validating", (2, 20), (10, 300), _ANSWERS),
    "save": Phase("saving a checkpoint", (1, 5), (5, 180), "The disk is slow or full."),
    "final": Phase("finishing", (2, 20), (5, 60), "Ray or the engine does not shut down."),
}
ORDER = tuple(PHASES)
_STARTING = ORDER[: ORDER.index("rollout")]
_PATIENCE = 2.0  # silence, in times of the longest usual duration on a GPU, that counts as a stall
_SHORTEST = 90.0


def stall(phase: str, silent: float) -> str | None:
    """Why a run stands still that printed nothing for `silent` seconds of `phase`; None if that is usual."""
    found = PHASES.get(phase)
    if found is None or silent < max(_SHORTEST, _PATIENCE * found.gpu[1]):
        return None
    usual = f"usual {found.gpu[0]}-{found.gpu[1]} s"
    return f"No output for {duration(silent)} while {found.label} ({usual}). {found.stall}"


class PhaseTracker:
    """Follows the phase; every method returns the phase that begins with what it is given, or None."""

    def __init__(self) -> None:
        self.phase = ""
        self._validates_first = True  # veRL's default
        self._in_step = True  # no rollout runs during the update (not so in veRL's async modes)
        self._separate = False  # engines on GPUs of their own start when the trainer is already "ready"
        self._awake = b""  # when the engine woke up last, by its own clock

    def configured(self, keys: Mapping[str, Any]) -> None:
        """The resolved veRL keys of the run."""
        self._validates_first = keys.get("trainer.val_before_train") is not False
        mode = keys.get("trainer.v1.trainer_mode", "sync")
        self._in_step, self._separate = mode == "sync", mode == "separate_async"

    def mark(self, name: str, phase: str, stamp: bytes | None) -> str | None:
        """A line with a mark of `launcher.console.marks`; `stamp` is vLLM's date and time, if it has one."""
        starting = self.phase in _STARTING
        if name == "ray_start":  # begins a start, also that of a second run in the same file
            return self._enter("ray") if not starting or self._ahead("ray") else None
        if name in ("asleep", "awake"):
            return self._engine(name, stamp or b"")
        if starting:
            if name == "ready" and self._separate:
                return self._enter("engine")
            if name == "ready":
                phase = "validate-first" if self._validates_first else "rollout"
            elif name == "validate":
                phase = "validate-first"
            # lines of earlier stages come late at times
            return self._enter(phase) if phase in (*_STARTING, "rollout") and self._ahead(phase) else None
        return self._enter(phase) if phase in ("validate", "save", "final") else None

    def _engine(self, name: str, stamp: bytes) -> str | None:
        """The engine sleeps while actor and critic are updated. Of several engines, some report late."""
        if name == "awake":
            self._awake = max(self._awake, stamp)
        elif self.phase == "rollout" and self._awake and stamp > self._awake:
            return self._enter("update")
        return None

    def step(self, last: bool) -> str | None:
        """A step line; `last` when no other follows."""
        return self._enter("final" if last else "rollout")

    def rollout_count(self) -> str | None:
        """Counts of running responses: of a validation, if those of the step itself are done with.

        The first ones also tell that a separate engine has started.
        """
        if self._separate and self.phase in ("engine", "checkpoint-load"):
            return self._enter("validate-first" if self._validates_first else "rollout")
        return self._enter("validate") if self._in_step and self.phase in ("update", "save") else None

    def begin(self) -> str | None:
        return self._enter("config")

    def _ahead(self, phase: str) -> bool:
        return ORDER.index(phase) > ORDER.index(self.phase)

    def _enter(self, phase: str) -> str | None:
        if phase == self.phase:
            return None
        self.phase = phase
        return phase
