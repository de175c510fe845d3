"""Runs and the presets they came from: a run edited out of an earlier one, and the last run of a preset."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from launcher.preset.yaml_text import text_of
from launcher.record.events import EventLog
from launcher.record.layout import RunDir, all_runs
from launcher.run.reading.compare import differences


def origin(earlier: RunDir, preset: Mapping[str, Any]) -> dict[str, Any]:
    """`after` in the run.yaml of the new run: the earlier run, and each setting with its values in both.

    A value is None where a run does not set it.
    """
    found = differences([earlier.read_info() | {"versions": {}}, {"preset": dict(preset)}])
    return {
        "run": earlier.id,
        "diff": [{"key": each.key, "before": each.values[0], "now": each.values[1]} for each in found],
    }


def note_origin(run: RunDir, after: Mapping[str, Any]) -> None:
    """Tells it in the history of the new run."""
    settings = [f"{each['key']}={text_of(each['now'])}" for each in after["diff"]]
    EventLog(run.events).add(
        "action", verb="relaunch", by="user", after=after["run"], settings=[f"after {after['run']}:", *settings]
    )


def last_run(preset: str) -> tuple[str, Mapping[str, Any]] | None:
    """The id and the settings of the newest run that a preset of this name started."""
    for run in all_runs():
        settings = run.read_info().get("preset") if run.read_name() == preset else None
        if isinstance(settings, Mapping):
            return run.id, settings
    return None
