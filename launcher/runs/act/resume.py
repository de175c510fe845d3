"""Continuing a run from its newest checkpoint."""

import contextlib
import os
import time
from collections.abc import Sequence

from launcher.core.errors import UserError
from launcher.core.files import discard
from launcher.core.format import counted
from launcher.preset.files import restore
from launcher.record import control
from launcher.record.events import Action, EventLog
from launcher.record.layout import RunDir
from launcher.record.state import RunState
from launcher.runs.act.start import Narrate, Plan, folders_of, note_force, silent
from launcher.runs.supervise.spawn import ended, spawn_supervisor, write_launch
from launcher.runs.watch.checkpoints import checkpoint, checkpoint_sizes, checkpoint_words, saving_words
from launcher.runs.watch.possible import Verb, completion, require


def resume(
    run: RunDir,
    settings: Sequence[str] = (),
    narrate: Narrate = silent,
    *,
    step: int | None = None,
    force: bool = False,
) -> RunDir:
    """Continues a run from a checkpoint in a new attempt, with the settings of its first one.

    `step`: the checkpoint (None: the newest); later steps are repeated. Raises UserError without one, and Refused as
    `start` does.
    """
    with control.alone(run):
        return _resume(run, settings, narrate, step, force=force)


def proposed(run: RunDir, state: RunState) -> tuple[str, str]:
    """The default checkpoint and settings for a resume, and the alternatives.

    For a complete run, the settings add the steps or epochs of its preset. Without a checkpoint, 0 is the start.
    """
    kept = checkpoint_sizes(run)
    if not kept:
        saving = saving_words(run.read_head()) or "trainer.save_every saves them"
        return "0 ", f"No checkpoint: {saving}. 0 starts a new run with the same settings."
    newest, there = max(kept), f"Checkpoints: {checkpoint_words(kept)}. 0 starts a new run with the same settings."
    trainer = (run.read_info().preset or {}).get("trainer")
    if completion(newest, state.total) and isinstance(trainer, dict):
        steps, epochs = trainer.get("steps"), trainer.get("epochs")
        if isinstance(steps, int):
            return f"{newest} trainer.steps={newest + steps} ", f"Trains {counted(steps, 'more step')}. {there}"
        if isinstance(epochs, int):
            return f"{newest} trainer.epochs={2 * epochs} ", f"Trains {counted(epochs, 'more epoch')}. {there}"
    return f"{newest} ", there


def _resume(run: RunDir, settings: Sequence[str], narrate: Narrate, step: int | None, *, force: bool) -> RunDir:
    state, info = ended(run), run.read_info()
    require(run, Verb.RESUME, state, info)
    step, folder = checkpoint(run, step)
    plan = Plan(restore(info.of_preset, info.preset or {}, settings), tuple(settings), checkpoint=folder)
    _refuse_complete(run, step, plan.loaded.preset.trainer.steps, state, settings)
    preflight = plan.admit(narrate, force=force, prepare=False)
    for left in map(run.attempt, run.attempt_numbers()):  # left by a killed resume, before the attempt was the run's
        if state.attempt is not None and left.number > state.attempt and not left.console.exists():
            discard(left.path)
    attempt, written = run.add_attempt(), run.events.stat().st_size if run.events.exists() else 0
    try:
        launch = plan.launch(folders_of(run, attempt), info.id or run.id)
        control.take(run)  # requests to the ended attempt do not apply to this one
        note_force(run, preflight)
        EventLog(run.events).add(Action("resume", step=step, settings=plan.changes))
        # last, because state.json makes the attempt the run's
        now = time.time()
        write_launch(run, attempt, launch, created=now, run_created=info.created or now, resume_step=step)
    except BaseException:
        with contextlib.suppress(OSError):
            discard(attempt.path)
            os.truncate(run.events, written)
        raise
    narrate(f"resuming from step {step} in attempt {attempt.number}")
    spawn_supervisor(run)
    return run


def _refuse_complete(run: RunDir, step: int, planned: int | None, state: RunState, settings: Sequence[str]) -> None:
    """Refuses a run without remaining steps: veRL would start completely and then end."""
    total = planned or (None if settings else state.total)  # settings may make the run longer
    if total is not None and (complete := completion(step, total)):
        hint = f"to continue training, add trainer.steps={step + total} or more trainer.epochs"
        raise UserError(f"run {run.id} is {complete}", hint)
