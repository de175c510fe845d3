"""Starting a run: preset in, run directory and a detached supervisor out. Resuming and stopping beside it."""

import os
import platform
import shutil
import signal
import socket
import time
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from launcher import verl_env
from launcher.data import toy
from launcher.errors import UserError
from launcher.files import write_json
from launcher.health.alerting import check_health
from launcher.preset.files import LoadedPreset, restore, with_settings
from launcher.preset.translate import Launch, RunFolders, build
from launcher.run import control, driver
from launcher.run.catch_up import catch_up
from launcher.run.checkpoints import checkpoint
from launcher.run.directory import AttemptDir, RunDir, create
from launcher.run.events import EventLog
from launcher.run.lock import alone
from launcher.run.process import ProcessId
from launcher.run.relaunch import note_origin, origin
from launcher.run.spawn import spawn_supervisor, write_launch
from launcher.run.state import ALIVE, StateFile, current

Narrate = Callable[[str], None]
STOP_PATIENCE = 30.0  # seconds that `stop --wait` waits


def _silent(_: str) -> None:
    pass


def start(
    preset: str | LoadedPreset,
    settings: Sequence[str] = (),
    narrate: Narrate = _silent,
    *,
    force: bool = False,
    after: RunDir | None = None,
    resume_from: Path | None = None,
) -> RunDir:
    """Starts a run and returns when its supervisor lives. Missing toy assets are built first.

    `after` is the run whose settings were edited for this one, `resume_from` a checkpoint of another run to
    begin with. Raises `preflight.gate.Refused` for a preset that would fail, unless `force`; there is no run
    then.
    """
    from launcher.preflight.gate import admit

    loaded = with_settings(preset, settings)
    env = verl_env.require(loaded.preset.python)
    check_health(loaded.preset.health)
    preflight = admit(
        loaded,
        force=force,
        narrate=narrate,
        prepare=lambda: toy.ensure_for(loaded.preset.model.path, env.python, narrate),
    )
    run = create(loaded.name)
    try:
        attempt = run.add_attempt()
        launch = _build(loaded, env, run, attempt, resume_from=resume_from)
        now = time.time()
        run.write_info(
            {
                "id": run.id,
                "name": loaded.name,
                "created": now,
                "preset": loaded.snapshot(),
                "preset_file": str(loaded.path) if loaded.origin == "file" else None,
                "overrides": list(settings),
                "argv": list(launch.argv),
                "env": launch.env,
                "cwd": str(run.path),
                "versions": {"ppo-tui": metadata.version("ppo-tui"), "python": env.python_version} | env.packages,
                "host": {"name": socket.gethostname(), "system": platform.platform(), "cpus": os.cpu_count()},
                "preflight": preflight,
                **({"after": origin(after, loaded.snapshot())} if after else {}),
            }
        )
        write_launch(run, attempt, launch, created=now, run_created=now, resume_step=None)
        _note_force(run, preflight)
        if after is not None:
            note_origin(run, origin(after, loaded.snapshot()))
    except BaseException:
        shutil.rmtree(run.path, ignore_errors=True)
        raise
    spawn_supervisor(run)
    return run


def preview(preset: str | LoadedPreset, settings: Sequence[str], below: Path) -> Launch:
    """What `start` would execute; the files of the run, which there is not yet, stand below a folder."""
    loaded = with_settings(preset, settings)
    env = verl_env.require(loaded.preset.python)
    assert env.verl is not None
    names = ("checkpoints", "samples/rollout", "samples/validation", "metrics.jsonl", "hydra")
    where = RunFolders(*(below / name for name in names))
    return build(loaded, version=env.verl, python=env.python, folders=where)


def resume(run: RunDir, settings: Sequence[str] = (), narrate: Narrate = _silent, *, force: bool = False) -> RunDir:
    """Continues a run from its newest checkpoint in a new attempt, with the settings of its first one.

    Raises Refused as `start` does.
    """
    with alone(run):
        return _resume(run, settings, narrate, force=force)


def _resume(run: RunDir, settings: Sequence[str], narrate: Narrate, *, force: bool) -> RunDir:
    from launcher.preflight.gate import admit

    state = current(run)
    if state["state"] in ALIVE or state.get("driver_alive"):
        raise UserError(f"run {run.id} is still going ({state['state']}): stop it first")
    if state["state"] == "imported":
        raise UserError(f"run {run.id} was imported: it has no checkpoint of ours to resume from")
    step, folder = checkpoint(run, None)
    if state["state"] == "lost" and (last := run.last_attempt()):
        catch_up(last)
    info = run.read_info()
    loaded = restore(info["name"], info["preset"], settings)
    check_health(loaded.preset.health)
    env = verl_env.require(loaded.preset.python)
    preflight = admit(loaded, force=force, narrate=narrate, prepare=lambda: None)
    attempt = run.add_attempt()
    try:
        launch = _build(loaded, env, run, attempt, resume_from=folder)
        _refuse_complete(run, step, launch.keys.get("trainer.total_training_steps"), state, settings)
    except BaseException:
        shutil.rmtree(attempt.path, ignore_errors=True)
        raise
    control.take(run)  # what was asked of the attempt that ended is not meant for this one
    write_launch(run, attempt, launch, created=time.time(), run_created=info["created"], resume_step=step)
    _note_force(run, preflight)
    EventLog(run.events).add("action", verb="resume", by="user", step=step, settings=list(settings))
    narrate(f"resuming from step {step} in attempt {attempt.number}")
    spawn_supervisor(run)
    return run


def _note_force(run: RunDir, preflight: dict[str, Any]) -> None:
    """A run that was started against the preflight says so, with what had been found."""
    if preflight["forced"]:
        EventLog(run.events).add("action", verb="force", by="user", findings=preflight["findings"])


def _refuse_complete(
    run: RunDir, step: int, planned: int | None, state: dict[str, Any], settings: Sequence[str]
) -> None:
    """veRL would go through its whole start-up and end without a step."""
    total = planned or (None if settings else state.get("total"))  # settings may make the run longer
    if total is not None and step >= total:
        raise UserError(
            f"run {run.id} is complete: its checkpoint is of step {step} of {total}; "
            f"to train on, resume it with trainer.steps={2 * total} or more trainer.epochs"
        )


def stop(run: RunDir, *, by: str = "user", wait: bool = False) -> str:
    """Asks for the end of a run; returns the state it is in then (`wait`: in the end).

    Without a supervisor the driver's process session is ended here and now.
    """
    state = current(run)
    if state["state"] == "lost" and state.get("driver_alive"):
        return _stop_orphan(run, state, by)
    if state["state"] in ALIVE:
        _ask_to_end(run, state, by)
    deadline = time.monotonic() + STOP_PATIENCE
    while wait and state["state"] in ALIVE and time.monotonic() < deadline:
        time.sleep(0.2)
        state = current(run)
    if state["state"] == "lost" and state.get("driver_alive"):  # the supervisor died meanwhile
        return _stop_orphan(run, state, by)
    return str(state["state"])


def _ask_to_end(run: RunDir, state: dict[str, Any], by: str) -> None:
    try:
        control.request(run, "stop", by=by)
    except OSError:  # a full disk: the supervisor listens to a signal, too
        supervisor = ProcessId.from_json(state.get("supervisor"))
        if supervisor is None or not supervisor.alive():
            raise
        os.kill(supervisor.pid, signal.SIGTERM)


def folders(run: RunDir, attempt: AttemptDir) -> RunFolders:
    """Where an attempt's veRL writes."""
    return RunFolders(
        checkpoints=run.checkpoints,
        rollouts=run.rollouts,
        validations=run.validations,
        metrics=attempt.metrics,
        hydra=attempt.hydra,
    )


def _build(
    loaded: LoadedPreset, env: verl_env.VerlEnv, run: RunDir, attempt: AttemptDir, resume_from: Path | None = None
) -> Launch:
    assert env.verl is not None
    return build(
        loaded,
        version=env.verl,
        folders=folders(run, attempt),
        python=env.python,
        experiment=run.id,
        resume_from=resume_from,
    )


def _stop_orphan(run: RunDir, state: dict[str, Any], by: str) -> str:
    """Ends a driver whose supervisor is gone, and writes what the supervisor would have written."""
    owner, attempt = ProcessId.from_json(state["driver"]), run.last_attempt()
    assert owner is not None and attempt is not None
    left = driver.stop(owner)
    step = catch_up(attempt)
    record = {"schema": 1, "code": None, "signal": None, "requested_by": by, "t": time.time()}
    write_json(attempt.exit, record)
    events = EventLog(run.events)
    events.add("action", verb="stop", by=by)
    events.add("exit", code=None, signal=None, requested_by=by)
    if left:
        events.add("note", text=f"processes of the run that would not die: {', '.join(left)}")
    kept = {key: value for key, value in state.items() if key not in ("schema", "updated", "heartbeat", "driver_alive")}
    kept["step"] = kept.get("step") if step is None else step
    StateFile(run).write({**kept, "state": "stopped", "exit": record, "cause": "stopped"})
    return "stopped"
