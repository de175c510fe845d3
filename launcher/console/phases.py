"""The phase of a run, from its printed lines or the running timer of veRL's trainer.

veRL announces the stages of its start and prints nothing within a step: from the lines alone, the phase after a step
line is "rollout", an estimate, until the next mark.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from launcher.core.format import duration
from launcher.core.tables import record, tables_of


@dataclass(frozen=True)
class Phase:
    """A row of phases.toml, which describes its fields."""

    label: str
    cpu: tuple[int, int]
    gpu: tuple[int, int]
    stall: str
    timers: tuple[str, ...] = ()


PHASES = {name: record(Phase, row) for name, row in tables_of(__file__).items()}
ORDER = tuple(PHASES)
OTHER = "other"
ALL_STEPS = "all steps done, waiting for its end"  # the phase for a log with an unknown writer
TIMED = {name: phase.timers for name, phase in PHASES.items() if phase.timers}
IN_STEP = frozenset({*TIMED, OTHER})
PHASE_OF_TIMER = {timer: name for name, timers in TIMED.items() for timer in timers}
TRAINING = ("log-prob", "update")
"""The phases that appear as "update" if only lines show the phase."""
_STARTING = ORDER[: ORDER.index("rollout")]
_PATIENCE = 2.0  # a stall, in multiples of the longest usual duration on a GPU
_SHORTEST = 90.0  # seconds


def stall(phase: str, silent: float) -> str | None:
    """The likely reason for `silent` seconds of `phase` without output; None if usual."""
    known = PHASES.get(phase)
    if known is None or silent < max(_SHORTEST, _PATIENCE * known.gpu[1]):
        return None
    usual = f"usual {known.gpu[0]}-{known.gpu[1]} s"
    return f"No output for {duration(silent)} while {known.label} ({usual}). {known.stall}"


class PhaseTracker:
    """Follows the phase; every method returns the phase that begins with its event, or None."""

    def __init__(self) -> None:
        self.phase = ""
        self._validates_first = True  # veRL's default
        self._in_step = True  # no rollout runs during the update (not so in veRL's async modes)
        self._separate = False  # engines on separate GPUs start when the trainer is already "ready"
        self._awake = b""  # when the engine woke up last, by its own clock

    def configured(self, keys: Mapping[str, Any]) -> None:
        """Takes in the run's resolved veRL keys."""
        self._validates_first = keys.get("trainer.val_before_train") is not False
        mode = keys.get("trainer.v1.trainer_mode", "sync")
        self._in_step, self._separate = mode == "sync", mode == "separate_async"

    def mark(self, name: str, phase: str, stamp: bytes | None) -> str | None:
        """Takes in a line with a mark of `launcher.console.marks`; `stamp`: vLLM's date and time, if any."""
        starting = self.phase in _STARTING
        if name in ("ray_start", "ray_started") and not starting:  # another run in this file
            return self._enter("ray")
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
        """Updates the phase from a line of the engine, which sleeps during the update of actor and critic. With several
        engines, some lines are late.
        """
        if name == "awake":
            self._awake = max(self._awake, stamp)
        elif self.phase == "rollout" and self._awake and stamp > self._awake:
            return self._enter("update")
        return None

    def step(self, last: bool) -> str | None:
        """Takes in a step line; `last`: the planned last step."""
        return self._enter("final" if last else "rollout")

    def rollout_count(self) -> str | None:
        """Takes in counts of running responses: a validation's, if the step's rollout is over.

        The first counts also show that a separate engine has started.
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
