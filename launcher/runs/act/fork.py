"""A run that begins at a checkpoint of another one, with some of its settings changed."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from launcher.core.errors import UserError
from launcher.preset.files import LoadedPreset, restore
from launcher.preset.settle import configuration
from launcher.preset.yaml_text import text_of
from launcher.record.info import Origin, RunInfo
from launcher.record.layout import RunDir
from launcher.record.state import current
from launcher.runs.act.start import Narrate, origin, silent, start
from launcher.runs.watch.checkpoints import beginning, checkpoint, checkpoint_steps
from launcher.runs.watch.history import Onset, first_onset
from launcher.runs.watch.possible import Verb, require
from launcher.runs.watch.run_settings import last_settings
from launcher.runs.watch.steps import parent_of
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


def fork(
    run: RunDir,
    settings: Sequence[str] = (),
    narrate: Narrate = silent,
    *,
    step: int | None = None,
    force: bool = False,
    trial: str | None = None,
) -> RunDir:
    """Starts a run from a checkpoint of `run`, with its weights, optimizer, position in the data and step.

    `step` names the checkpoint, 0 the start; None is the one before the first flag, the newest without flags. `trial`
    is the rule whose fix the new run tries. Raises UserError if there is none or a setting cannot change, and Refused
    as `start` does.
    """
    loaded, after = planned_fork(run, settings, step=step, trial=trial)
    narrate(f"forking run {run.id} from {f'step {after.step}' if after.step else 'its start'}")
    return start(loaded, settings, narrate, force=force, after=after, resume_from=fork_folder(after))


def planned_fork(
    run: RunDir,
    settings: Sequence[str] = (),
    *,
    step: int | None = None,
    trial: str | None = None,
    undoes: str | None = None,
) -> tuple[LoadedPreset, Origin]:
    """The preset of a fork and its origin, as in `fork`; `undoes` as in `Origin`. Raises UserError."""
    info = refuse_parent(run)
    at = fork_step(run) if step is None else step
    loaded = restore(info.name, info.preset or {}, settings)
    after = origin(run, loaded.snapshot(), at, trial, undoes)
    if fork_folder(after) is not None:
        refuse_fixed(info.preset or {}, loaded)
    return loaded, after


def fork_folder(after: Origin) -> Path | None:
    """The checkpoint that a fork begins with, None for the start. Raises UserError if it is missing."""
    if not after.step:
        return None
    run = parent_of(after)
    if run is None:
        raise UserError(f"run {after.run}, from which the fork was to begin, was deleted")
    begun = beginning(run)
    if begun is not None and begun[0] == after.step:
        return begun[1]
    return checkpoint(run, after.step, option="--checkpoint")[1]


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
