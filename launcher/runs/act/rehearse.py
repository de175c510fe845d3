"""Rehearses a preset: veRL itself runs two steps on the CPU before the run takes a GPU."""

import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from launcher.check import worker
from launcher.check.checks import quick
from launcher.check.finding import Finding, found
from launcher.check.subject import subject
from launcher.console.phases import PHASES
from launcher.core import paths
from launcher.core.errors import UserError
from launcher.core.files import make_folder
from launcher.data import toy
from launcher.preset import rehearsal
from launcher.preset.files import LoadedPreset
from launcher.record.info import Preflight
from launcher.record.json import Record
from launcher.record.layout import RunDir
from launcher.record.state import ALIVE, RunState, current
from launcher.runs.act.removal import delete
from launcher.runs.act.start import Narrate, Plan, start
from launcher.runs.act.stop import stop
from launcher.runs.watch.run_diagnosis import diagnosis
from launcher.verl import env as verl_env

PATIENCE = 1200.0  # seconds for all of it; two cores take 100
BUILD = 300.0  # seconds for a small model, including the download of its tokenizer
POLL = 1.0
OF_MACHINE = (
    "host-oom-ray",
    "host-oom-killed",
    "host-memory",
    "shared-memory",
    "killed",
    "killed-not-oom",
    "disk-full",
    "disk-full-checkpoint",
    "disk-full-run",
)
"""Causes in the machine, not in the preset."""


@dataclass(frozen=True)
class SmallModel(Record):
    """The reply of `ppo_tui_inside.probes.small_model`: the model's folder, or the reason why there is none."""

    path: str = ""
    error: str | None = None
    failed: str | None = None


def rehearse(
    loaded: LoadedPreset, narrate: Narrate, cancelled: Callable[[], bool] = lambda: False, poll: float = POLL
) -> Finding | None:
    """Rehearses a preset.

    Returns an error in veRL's words, a note that veRL finished, or a warning why the preset cannot be rehearsed; None
    if cancelled. The rehearsal is a separate run, removed unless it fails.
    """
    make_folder(paths.cache_dir())
    with tempfile.TemporaryDirectory(prefix="rehearsal-", dir=paths.cache_dir()) as folder:
        try:
            smaller = _smaller(loaded, Path(folder), narrate)
            run = start(Plan(smaller), narrate, preflight=Preflight())
        except (UserError, OSError) as why:
            return found("REHEARSAL.none", why=why)
        # follows the run and judges its end
        try:
            state = _followed(run, narrate, cancelled, poll)
        except BaseException:
            _removed(run)
            raise
        if state is None:
            _removed(run)
            return None
        if state.state == "finished":
            delete(run)
            return found("REHEARSAL.finished", steps=rehearsal.STEPS, untried=rehearsal.UNTRIED)
        return _failure(run, state)


def _smaller(loaded: LoadedPreset, folder: Path, narrate: Narrate) -> LoadedPreset:
    """The preset with small models, made in `folder`."""
    env = verl_env.require(loaded.preset.python, loaded.preset.own_verl)
    toy.ensure_for(loaded.preset.model.path, env.python, narrate)
    small: dict[str, str] = {}
    for name in rehearsal.models(loaded):
        narrate(f"rehearsal: a small model like {name}")
        place = str(folder / str(len(small)))
        request = {"model": name, "trust": loaded.preset.model.trust_remote_code, "folder": place}
        answer = worker.ask(env.python, "small_model", request, timeout=BUILD, env=loaded.preset.env)
        reply = SmallModel.from_json(answer)
        if why := reply.error or reply.failed:
            raise UserError(f"no small model could be built from {name}: {why}")
        small[name] = reply.path
    smaller = rehearsal.rehearsed(loaded, small, os.cpu_count() or 1)
    for wrong in quick(subject(smaller)):
        if wrong.level == "error":
            raise UserError(f"{wrong.message} ({wrong.id})")
    return smaller


def _followed(run: RunDir, narrate: Narrate, cancelled: Callable[[], bool], poll: float) -> RunState | None:
    """The state at the end of the run or of its time limit; None if cancelled."""
    begin, phase = time.monotonic(), None
    while (state := current(run)).state in ALIVE and time.monotonic() - begin < PATIENCE:
        if cancelled():
            return None
        if state.phase and state.phase != phase:
            phase = state.phase
            narrate(f"rehearsal: {PHASES[phase].label}")
        time.sleep(poll)
    return state


def _failure(run: RunDir, state: RunState) -> Finding | None:
    """The reason why a rehearsal did not finish; stops a slow one. None if the user stopped it."""
    if state.state in ALIVE:
        stop(run, by="rehearsal: it took too long", wait=True)
        phase = PHASES[state.phase or "config"].label
        return found("REHEARSAL.stopped", minutes=PATIENCE / 60, phase=phase, run=run.id)
    if state.state == "stopped":
        return None
    result = diagnosis(run)
    evidence = result.evidence[0].text if result.evidence else ""
    detail = f": {evidence}" if evidence and evidence not in result.title else ""
    failed = found(
        "REHEARSAL.failed",
        title=result.title,
        detail=detail,
        run=run.id,
        level="warning" if result.cause in OF_MACHINE else "error",
    )
    known = result.fixes[:1] if result.cause != "unknown" else ()
    return replace(failed, fixes=(*known, *failed.fixes))


def _removed(run: RunDir) -> None:
    stop(run, by="rehearsal: cancelled", wait=True)
    delete(run)
