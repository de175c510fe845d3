"""What of a run can be forked: from which steps, and with which settings."""

from collections.abc import Mapping
from typing import Any

from launcher.core.errors import UserError
from launcher.preset.files import LoadedPreset
from launcher.preset.settle import configuration
from launcher.preset.yaml_text import text_of
from launcher.record.info import RunInfo
from launcher.record.layout import RunDir
from launcher.record.state import current
from launcher.runs.watch.checkpoints import beginning, checkpoint, checkpoint_steps
from launcher.runs.watch.history import Onset, first_onset
from launcher.runs.watch.possible import Verb, require
from launcher.runs.watch.run_settings import last_settings
from launcher.verl.config import ACTOR, CRITIC, CRITIC_PATH, ESTIMATOR, GPUS, MODEL, MODEL_PATH, NODES

_ENGINE = "the checkpoint is in the format of the engine that wrote it"
_OPTIMIZER = "the optimizer's state in the checkpoint is of another kind"
_PARTS = "the checkpoint has one part for each GPU"
_WEIGHTS = "the weights in the checkpoint are of another model"
FIXED: Mapping[str, str] = {
    GPUS: _PARTS,
    NODES: _PARTS,
    MODEL_PATH: _WEIGHTS,
    f"{MODEL}.lora_rank": _WEIGHTS,
    f"{MODEL}.lora_alpha": _WEIGHTS,
    f"{MODEL}.lora.rank": _WEIGHTS,
    f"{MODEL}.target_modules": _WEIGHTS,
    CRITIC_PATH: _WEIGHTS,
    f"{CRITIC}.model.lora_rank": _WEIGHTS,
    f"{ACTOR}.strategy": _ENGINE,
    f"{CRITIC}.strategy": _ENGINE,
    **{f"{part}.optim.{name}": _OPTIMIZER for part in (ACTOR, CRITIC) for name in ("optimizer", "optimizer_impl")},
}
"""veRL keys whose values a checkpoint requires to stay the same, and why.

veRL: `utils/checkpoint/fsdp_checkpoint_manager.py: FSDPCheckpointManager.load_checkpoint`.
"""


def fork_steps(run: RunDir) -> list[int]:
    """Steps that a run can be forked from: its checkpoints, and, for a fork, the one that it began with."""
    begun = beginning(run)
    return sorted({*checkpoint_steps(run), *([begun[0]] if begun else [])})


def refuse_parent(run: RunDir) -> RunInfo:
    """The settings of a run that can be forked. Raises UserError for others."""
    info, _ = last_settings(run)
    require(run, Verb.FORK, current(run, checks=False), info)
    return info


def fork_step(run: RunDir, onset: Onset | None = None) -> int:
    """The newest checkpoint before the first flag (or `onset`), the newest one without flags. Raises UserError."""
    onset = onset or first_onset(run)
    kept = fork_steps(run)
    if onset is None:
        return kept[-1] if kept else checkpoint(run, None)[0]
    before = [step for step in kept if step < onset.step]
    if before:
        return before[-1]
    later = f", or --checkpoint {' or '.join(map(str, kept))} for a later one" if kept else ""
    raise UserError(
        f"run {run.id} has no checkpoint from before step {onset.step}, which counts for this flag: {onset.told}",
        f"use --checkpoint 0 for the start of the run{later}",
    )


def refuse_fixed(parent: Mapping[str, Any], loaded: LoadedPreset) -> None:
    """Raises UserError for a setting that cannot change between the parent's preset and this one."""
    before, now = configuration(parent), configuration(loaded.snapshot())
    for key, why in FIXED.items():
        old, new = before.get(key), now.get(key)
        there = not key.startswith(f"{CRITIC}.") or (before.has_critic and now.has_critic)
        if there and old != new:
            raise UserError(
                f"{key} cannot change from {text_of(old)} to {text_of(new)} in a fork: {why}",
                "use --checkpoint 0 to begin again",
            )
    if now.has_critic and not before.has_critic:
        raise UserError(
            f"{ESTIMATOR} cannot become {text_of(now.get(ESTIMATOR))} in a fork: the checkpoint has no critic",
            "use --checkpoint 0 to begin again",
        )
