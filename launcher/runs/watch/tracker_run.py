"""A run as a tracker has it, whatever its files are."""

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from launcher.core.errors import NoStepYet, UserError
from launcher.metrics.frameworks import Framework, Settings, of_names
from launcher.metrics.records import StepRecord, is_step
from launcher.metrics.timing import seconds_of
from launcher.runs.watch.foreign import row_steps

_FIRST = 100  # records whose names show the framework


@dataclass
class TrackerFiles:
    """A tracker's run or attempt; `config` has veRL keys, its paths are below `folder`; `notes`: unreadable parts."""

    path: Path
    name: str
    folder: Path
    started: float | None = None
    config: Settings = field(default_factory=dict)
    steps: dict[int, StepRecord] = field(default_factory=dict)
    console: Path | None = None
    exit_code: int | None = None
    notes: list[str] = field(default_factory=list)
    framework: Framework | None = None

    def translate(self, names: Framework | None) -> None:
        """Gives the metrics and settings of another framework our names, and the steps its numbers."""
        records = sorted(self.steps.values(), key=lambda record: record.step)
        seen = {name for record in records[:_FIRST] for name in record.data}
        self.framework = names or of_names(seen)
        if self.framework is None or self.framework.own:
            self.framework = None
            return
        rows = ({"_step": record.step, "_timestamp": record.t, **record.data} for record in records)
        self.steps = {}
        for step in row_steps(rows, self.framework):
            self.add(step.step, step.t, step.data)
        self.config = self.framework.keys(self.config)

    def add(self, step: Any, t: object, data: Mapping[str, float]) -> None:
        """Metrics of a step; those of one step may come in parts."""
        if is_step(step) and data:
            t = float(t) if isinstance(t, (int, float)) and math.isfinite(t) else self.started or 0.0
            record = self.steps.setdefault(step, StepRecord(step, t, None, {}))
            record.data |= data
            record.t = t

    def clock(self) -> "TrackerClock":
        """When its steps were done."""
        times = {step: record.t for step, record in self.steps.items()}
        return TrackerClock(times, self.started or min(times.values(), default=self.path.stat().st_mtime))


@dataclass
class TrackerClock:
    """As `LogClock`, with the times that the tracker wrote down."""

    times: dict[int, float]
    now: float

    def __call__(self, records: Sequence[StepRecord]) -> None:
        for record in records:
            self.now = record.t = self.times.get(record.step, self.now + seconds_of(record.data))


def no_metrics(path: Path, notes: Sequence[str]) -> UserError:
    """The error of files without a step, and why they have none."""
    why = f" ({'; '.join(notes)})" if notes else ""
    return NoStepYet(f"{path} has no metrics{why}", "use another run, or the console log of this one")


def numbers(items: Iterable[tuple[str, Any]]) -> dict[str, float]:
    """The numeric values. Trackers write NaN and infinity as words, because JSON has neither."""
    found = {}
    for key, value in items:
        if value in ("NaN", "Infinity", "-Infinity"):
            value = float(value)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and not key.startswith("_"):
            with suppress(OverflowError):
                found[key] = float(value)
    return found
