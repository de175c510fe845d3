"""Runs and the presets they came from: a run edited out of an earlier one, and the last run of a preset."""

from collections.abc import Mapping
from typing import Any

from launcher.preset.yaml_text import text_of
from launcher.record.events import Action, EventLog
from launcher.record.info import Edit, Origin, RunInfo
from launcher.record.layout import RunDir, all_runs
from launcher.runs.watch.run_settings import differences, last_settings


def origin(
    earlier: RunDir,
    preset: dict[str, Any],
    step: int | None = None,
    trial: str | None = None,
    undoes: str | None = None,
) -> Origin:
    """The earlier run, and each setting that is another in the new one; the others as in `Origin`."""
    found = differences([RunInfo(preset=last_settings(earlier)[0].preset), RunInfo(preset=preset)])
    return Origin(earlier.id, tuple(Edit(each.key, *each.values) for each in found), step, trial, undoes)


def note_origin(run: RunDir, after: Origin) -> None:
    """Notes it in the history of the new run."""
    changes = (f"{each.key}={text_of(each.now)}" for each in after.diff)
    verb = "relaunch" if after.step is None else "fork"
    told = (f"after {after.run}:", *changes)
    EventLog(run.events).add(Action(verb, after=after.run, step=after.step, settings=told))


def last_run(preset: str) -> tuple[str, Mapping[str, Any]] | None:
    """The id and the settings of the newest run that a preset of this name started."""
    for run in all_runs():
        info = run.read_info() if run.read_name() == preset else None
        if info is not None and info.preset is not None and not info.from_log:
            return run.id, info.preset
    return None
