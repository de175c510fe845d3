"""A run that begins at a checkpoint of another one, with some of its settings changed."""

from collections.abc import Sequence
from pathlib import Path

from launcher.core.errors import UserError
from launcher.preset.files import LoadedPreset, restore
from launcher.record.info import Origin
from launcher.record.layout import RunDir
from launcher.runs.act.start import Narrate, origin, silent, start
from launcher.runs.watch.checkpoints import beginning, checkpoint
from launcher.runs.watch.forking import fork_step, refuse_fixed, refuse_parent
from launcher.runs.watch.steps import parent_of


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
    loaded = restore(info.of_preset, info.preset or {}, settings)
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
