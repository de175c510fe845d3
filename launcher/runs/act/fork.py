"""Starts a run from another run's checkpoint, with some settings changed."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from launcher.core.errors import UserError
from launcher.preset.settle import configured
from launcher.record.info import Origin
from launcher.record.layout import RunDir
from launcher.runs.act.start import Narrate, Plan, silent, start
from launcher.runs.watch.parent import Parent, refuse_fixed
from launcher.runs.watch.possible import Verb
from launcher.runs.watch.steps import parent_of


def fork(
    run: RunDir,
    changes: Sequence[str] = (),
    narrate: Narrate = silent,
    *,
    step: int | None = None,
    name: str = "",
    force: bool = False,
) -> RunDir:
    """Starts a run from a checkpoint of `run`, with its weights, optimizer, data position and step.

    `name`: its own [default: that of the preset]. Raises as `planned_fork` and `start` do.
    """
    plan = replace(planned_fork(Parent(run), changes, step=step), name=name)
    begun = plan.origin and plan.origin.step
    narrate(f"forking run {run.id} from {f'step {begun}' if begun else 'its start'}")
    return start(plan, narrate, force=force)


def planned_fork(
    run: Parent,
    changes: Sequence[str] = (),
    *,
    step: int | None = None,
    trial: str | None = None,
    undoes: str | None = None,
) -> Plan:
    """The plan of a fork; `trial` and `undoes` as in `Origin`.

    `step`: the checkpoint, 0: the start, None: the last one before the first flag, or the newest without flags. Raises
    UserError for a missing checkpoint or a setting that cannot change.
    """
    run.require(Verb.FORK)
    at = run.fork_step() if step is None else step
    loaded = run.restored(changes)
    folder = run.checkpoint(at)
    if folder is not None:
        refuse_fixed(run.config, configured(loaded))
    return Plan(loaded, tuple(changes), run.origin(loaded, at, trial, undoes), folder)


def fork_folder(after: Origin) -> Path | None:
    """The checkpoint of a fork in the queue, None for the start. Raises UserError if it is missing."""
    run = parent_of(after)
    if after.step and run is None:
        raise UserError(f"run {after.run}, the parent of the fork, was deleted")
    return Parent(run).checkpoint(after.step or 0) if run is not None else None
