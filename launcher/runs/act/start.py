"""Makes a run directory from a preset and spawns a detached supervisor; records the run whose settings were edited."""

import os
import platform
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from launcher.data import toy
from launcher.preset.alerting import check_health
from launcher.preset.files import LoadedPreset, with_settings
from launcher.preset.translate import Launch, RunFolders, build
from launcher.preset.yaml_text import text_of
from launcher.record.events import Action, EventLog
from launcher.record.info import Edit, Origin, Preflight, RunInfo
from launcher.record.layout import AttemptDir, RunDir, all_runs, appearing, require_name, require_writable
from launcher.record.note import RunNote
from launcher.runs.supervise.spawn import spawn_supervisor, write_launch
from launcher.runs.watch.run_settings import differences, last_settings
from launcher.verl import env as verl_env

Narrate = Callable[[str], None]


def silent(_: str) -> None:
    pass


def start(
    preset: str | LoadedPreset,
    settings: Sequence[str] = (),
    narrate: Narrate = silent,
    *,
    force: bool = False,
    after: RunDir | Origin | None = None,
    resume_from: Path | None = None,
    id: str | None = None,
    preflight: Preflight | None = None,
    note: str = "",
    name: str = "",
) -> RunDir:
    """Starts a run and returns when its supervisor lives. Missing toy assets are built first.

    `after` is the run whose settings were edited for this one, or the parent that it is forked from; `resume_from` a
    checkpoint of another run to begin with; `id` the id of a queued run; `preflight` the earlier findings, if nothing
    is to be checked again; `note` and `name` those of the run, which else has the name of the preset. Raises
    `check.gate.Refused` for a preset that would fail, unless `force`; then no run is made.
    """
    from launcher.check.gate import admit

    require_writable()
    require_name(name)
    loaded = with_settings(preset, settings)
    if loaded.hides_shipped:
        narrate(f"{loaded.name} is your preset {loaded.path}, which hides the shipped one")
    env = verl_env.require(loaded.preset.python, loaded.preset.own_verl)
    check_health(loaded.preset.health)

    def prepare() -> None:
        toy.ensure_for(loaded.preset.model.path, env.python, narrate)

    if preflight is None:
        preflight = admit(loaded, force=force, narrate=narrate, prepare=prepare)
    with appearing(name or loaded.name, id) as (run, hidden):
        attempt = hidden.add_attempt()
        launch = build_launch(loaded, env, run, run.attempt(attempt.number), resume_from=resume_from)
        now = time.time()
        after_run = origin(after, loaded.snapshot()) if isinstance(after, RunDir) else after
        info = RunInfo(
            id=run.id,
            name=name or loaded.name,
            preset_name=loaded.name if name else None,
            created=now,
            preset=loaded.snapshot(),
            preset_file=str(loaded.path) if loaded.origin == "file" else None,
            overrides=tuple(settings),
            argv=tuple(launch.argv),
            on_cpu=launch.keys.get("trainer.device") == "cpu",
            env=launch.env,
            cwd=launch.cwd or str(run.path),
            versions={"ppo-tui": metadata.version("ppo-tui"), "python": env.python_version} | env.packages,
            host={"name": socket.gethostname(), "system": platform.platform(), "cpus": os.cpu_count()},
            preflight=preflight,
            after=after_run,
        )
        info.write(hidden.run_yaml)
        begun = after_run.step or None if after_run else None
        write_launch(hidden, attempt, launch, created=now, resume_step=begun, cwd=run.path)
        note_force(hidden, preflight)
        if note:
            RunNote.parse(note).write(hidden.note)
        if after_run is not None:
            note_origin(hidden, after_run)
    spawn_supervisor(run)
    return run


def preview(preset: str | LoadedPreset, settings: Sequence[str], below: Path) -> Launch:
    """The launch that `start` would make, with the files of the run below a folder."""
    loaded = with_settings(preset, settings)
    env = verl_env.require(loaded.preset.python, loaded.preset.own_verl)
    assert env.verl is not None
    return build(loaded, version=env.verl, python=env.python, folders=RunFolders.below(below))


def note_force(run: RunDir, preflight: Preflight) -> None:
    """Records that a run was started against the preflight, with the findings."""
    if preflight.forced:
        EventLog(run.events).add(Action("force", findings=preflight.findings))


def build_launch(
    loaded: LoadedPreset, env: verl_env.VerlEnv, run: RunDir, attempt: AttemptDir, resume_from: Path | None = None
) -> Launch:
    """The launch of an attempt that writes into the folders of its run."""
    assert env.verl is not None
    folders = RunFolders(run.checkpoints, run.rollouts, run.validations, attempt.metrics, attempt.hydra)
    return build(
        loaded, version=env.verl, folders=folders, python=env.python, experiment=run.read_id(), resume_from=resume_from
    )


def origin(
    earlier: RunDir,
    preset: dict[str, object],
    step: int | None = None,
    trial: str | None = None,
    undoes: str | None = None,
) -> Origin:
    """The earlier run, and each changed setting; the other arguments as in `Origin`."""
    changes = differences([RunInfo(preset=last_settings(earlier)[0].preset), RunInfo(preset=preset)])
    return Origin(earlier.id, tuple(Edit(each.key, *each.values) for each in changes), step, trial, undoes)


def note_origin(run: RunDir, after: Origin) -> None:
    """Records it in the events of the new run."""
    changes = (f"{each.key}={text_of(each.now)}" for each in after.diff)
    verb = "relaunch" if after.step is None else "fork"
    settings = (f"after {after.run}:", *changes)
    EventLog(run.events).add(Action(verb, after=after.run, step=after.step, settings=settings))


def last_run(preset: str) -> tuple[str, Mapping[str, Any]] | None:
    """The id and the settings of the newest run that a preset of this name started."""
    for run in all_runs():
        info = run.read_info() if run.read_head().of_preset == preset else None
        if info is not None and info.preset is not None and not info.from_log:
            return run.id, info.preset
    return None
