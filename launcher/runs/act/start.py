"""The plan of a run or a further attempt, and its start: a run directory with a detached supervisor."""

from __future__ import annotations

import os
import platform
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from launcher.data import toy
from launcher.preset.alerting import check_health
from launcher.preset.files import LoadedPreset, with_settings
from launcher.preset.translate import Launch, RunFolders, build
from launcher.preset.yaml_text import text_of
from launcher.record.events import Action, EventLog
from launcher.record.info import Origin, Preflight, RunInfo
from launcher.record.layout import AttemptDir, RunDir, all_runs, appearing, require_name, require_writable
from launcher.record.note import RunNote
from launcher.record.queued import Checked
from launcher.runs.supervise.spawn import spawn_supervisor, write_launch
from launcher.runs.watch.parent import Parent
from launcher.verl import env as verl_env
from launcher.verl.env import VerlEnv

Narrate = Callable[[str], None]


def silent(_: str) -> None:
    pass


@dataclass(frozen=True)
class Plan:
    """A preset with `changes`: KEY=VALUE settings over it.

    `origin`: the run that it comes from. `checkpoint`: where it begins. `name`, `note`: the run's [default name: the
    preset's].
    """

    loaded: LoadedPreset
    changes: tuple[str, ...] = ()
    origin: Origin | None = None
    checkpoint: Path | None = None
    name: str = ""
    note: str = ""

    @classmethod
    def of(
        cls,
        preset: str | LoadedPreset,
        changes: Sequence[str] = (),
        *,
        after: RunDir | None = None,
        name: str = "",
        note: str = "",
    ) -> Plan:
        """The plan of a preset, its name or path, with changes; `after`: the run whose settings were edited."""
        loaded = with_settings(preset, changes)
        origin = None if after is None else Parent(after).origin(loaded)
        return cls(loaded, tuple(changes), origin, name=name, note=note)

    @property
    def env(self) -> VerlEnv:
        """The environment of the run's Python. Raises UserError if it has no veRL."""
        return verl_env.require(self.loaded.preset.python, self.loaded.preset.own_verl)

    def admit(self, narrate: Narrate, *, force: bool, prepare: bool = True) -> Preflight:
        """Makes the preflight; `prepare` builds missing toy assets before its slow checks.

        Raises UserError, and `check.gate.Refused` for a preset that would fail, unless `force`.
        """
        from launcher.check.gate import admit

        making = self._making(narrate)
        return admit(self.loaded, force=force, narrate=narrate, prepare=making if prepare else lambda: None)

    def admit_ahead(self, narrate: Narrate, *, force: bool) -> Checked:
        """The part of the preflight that is possible before the run's turn; raises as `admit` does."""
        from launcher.check.gate import admit_ahead

        return admit_ahead(self.loaded, force=force, narrate=narrate, prepare=self._making(narrate))

    def _making(self, narrate: Narrate) -> Callable[[], None]:
        """Makes the toy task if the run needs it. Raises UserError for errors that no preflight checks."""
        python = self.env.python
        check_health(self.loaded.preset.health)
        return partial(toy.ensure_for, self.loaded.preset.model.path, python, narrate)

    def launch(self, folders: RunFolders, id: str | None = None) -> Launch:
        """The command of an attempt with these output folders; `id`: the run's, if it exists."""
        env = self.env
        assert env.verl is not None
        return build(
            self.loaded,
            version=env.verl,
            python=env.python,
            folders=folders,
            experiment=id,
            resume_from=self.checkpoint,
        )


def start(
    plan: Plan,
    narrate: Narrate = silent,
    *,
    force: bool = False,
    id: str | None = None,
    preflight: Preflight | None = None,
) -> RunDir:
    """Starts a run and returns when its supervisor runs. Builds missing toy assets first.

    `id`: a queued run's. `preflight`: earlier findings, which are then not checked again. Raises as `Plan.admit` does,
    without making a run.
    """
    require_writable()
    require_name(plan.name)
    loaded, after = plan.loaded, plan.origin
    if loaded.hides_shipped:
        narrate(f"{loaded.name} is your preset {loaded.path}, which hides the shipped one")
    if preflight is None:
        preflight = plan.admit(narrate, force=force)
    check_health(loaded.preset.health)  # also for a preset from the queue
    with appearing(plan.name or loaded.name, id) as (run, hidden):
        attempt, now = hidden.add_attempt(), time.time()
        launch = plan.launch(folders_of(run, run.attempt(attempt.number)), run.id)
        info_of(plan, run, launch, preflight, now).write(hidden.run_yaml)
        write_launch(hidden, attempt, launch, created=now, resume_step=(after and after.step) or None, cwd=run.path)
        note_force(hidden, preflight)
        if plan.note:
            RunNote.parse(plan.note).write(hidden.note)
        if after is not None:
            note_origin(hidden, after)
    spawn_supervisor(run)
    return run


def info_of(plan: Plan, run: RunDir, launch: Launch, preflight: Preflight, now: float) -> RunInfo:
    """The run.yaml of a run that begins `now` (unix seconds)."""
    loaded, env = plan.loaded, plan.env
    return RunInfo(
        id=run.id,
        name=plan.name or loaded.name,
        preset_name=loaded.name if plan.name else None,
        created=now,
        preset=loaded.snapshot(),
        preset_file=str(loaded.path) if loaded.origin == "file" else None,
        overrides=plan.changes,
        argv=tuple(launch.argv),
        on_cpu=launch.keys.get("trainer.device") == "cpu",
        env=launch.env,
        cwd=launch.cwd or str(run.path),
        versions={"ppo-tui": metadata.version("ppo-tui"), "python": env.python_version} | env.packages,
        host={"name": socket.gethostname(), "system": platform.platform(), "cpus": os.cpu_count()},
        preflight=preflight,
        after=plan.origin,
    )


def folders_of(run: RunDir, attempt: AttemptDir) -> RunFolders:
    """The output folders of an attempt."""
    return RunFolders(run.checkpoints, run.rollouts, run.validations, attempt.metrics, attempt.hydra)


def note_force(run: RunDir, preflight: Preflight) -> None:
    """Records the findings of a preflight that a run was started against."""
    if preflight.forced:
        EventLog(run.events).add(Action("force", findings=preflight.findings))


def note_origin(run: RunDir, after: Origin) -> None:
    """Records the run's origin in its events."""
    changes = (f"{each.key}={text_of(each.now)}" for each in after.diff)
    verb = "relaunch" if after.step is None else "fork"
    settings = (f"after {after.run}:", *changes)
    EventLog(run.events).add(Action(verb, after=after.run, step=after.step, settings=settings))


def last_run(preset: str) -> tuple[str, Mapping[str, Any]] | None:
    """Id and settings of the newest run started from a preset of this name."""
    for run in all_runs():
        info = run.read_info() if run.read_head().of_preset == preset else None
        if info is not None and info.preset is not None and not info.from_log:
            return run.id, info.preset
    return None
