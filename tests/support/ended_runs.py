"""Ended runs, from records only."""

from collections.abc import Sequence
from typing import Any

from launcher.preset.files import load
from launcher.record.attempt import Exit
from launcher.record.info import Origin, RunInfo
from launcher.record.layout import RunDir, create
from launcher.record.state import RunState, StateFile


def ran(created: float, settings: Sequence[str], after: Origin | None = None, **state: Any) -> RunDir:
    """A toy run of 100 seconds; `state`: for state.json."""
    run = create("toy-cpu")
    preset = load("toy-cpu", settings).snapshot()
    RunInfo(run.id, "toy-cpu", created=created, preset=preset, after=after).write(run.run_yaml)
    told = {"state": "finished", "verdict": "OK", "step": 30, "exit": Exit(code=0, t=created + 100)} | state
    StateFile(run).write(RunState(created=created, **told))
    return run
