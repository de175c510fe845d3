"""Predicts the duration of a preset's run on this machine from an earlier run."""

import contextlib
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from launcher.metrics.records import StepRecord
from launcher.record.layout import AttemptDir, all_runs

_LOOKED_AT = 40  # maximum number of runs searched for an earlier one
_LEAST = 3  # steps that make a pace: the first ones are slower
_END = 1 << 18  # bytes of steps.jsonl that hold its last line
# groups that change a pace
_PACED = ("algorithm", "model", "data", "actor", "critic", "rollout", "reward", "overrides")


@dataclass(frozen=True)
class Pace:
    """Seconds of the start-up and per step, all included. `same`: settings are equal except the number of steps."""

    run: str
    startup: float
    step: float
    same: bool

    def whole(self, steps: int) -> float:
        """Total seconds of a run with this number of steps."""
        return self.startup + steps * self.step


def pace_of(name: str, preset: Mapping[str, Any]) -> Pace | None:
    """The pace of the newest run of a preset on this machine, preferably with equal settings."""
    found: Pace | None = None
    here = socket.gethostname()
    for run in all_runs()[:_LOOKED_AT]:
        head = run.read_head()
        if head.of_preset != name or head.from_log:
            continue
        attempt = run.attempt(1)
        launch = attempt.read_launch()
        measured = _measured(attempt) if launch.host == here and launch.created is not None else None
        if measured is None:
            continue
        first, step = measured
        startup = max(first - (launch.created or 0.0) - step, 0.0)
        pace = Pace(run.read_id(), startup, step, _settings(run.read_info().preset or {}) == _settings(preset))
        if pace.same:
            return pace
        found = found or pace
    return found


def _settings(preset: Mapping[str, Any]) -> Mapping[str, object]:
    trainer = preset.get("trainer")
    size = {key: trainer.get(key) for key in ("gpus", "nodes")} if isinstance(trainer, dict) else {}
    return {**size, **{group: preset.get(group) or None for group in _PACED}}


def _measured(attempt: AttemptDir) -> tuple[float, float] | None:
    """The end of the first step, and the seconds per step; None with too few steps."""
    with contextlib.suppress(OSError), attempt.steps.open("rb") as file:
        first = StepRecord.from_line(file.readline())
        file.seek(max(file.seek(0, 2) - _END, 0))
        last = next(
            (found for line in reversed(file.read().splitlines()) if (found := StepRecord.from_line(line))), None
        )
        if first is not None and last is not None and last.step - first.step >= _LEAST and last.t > first.t:
            return first.t, (last.t - first.t) / (last.step - first.step)
    return None
