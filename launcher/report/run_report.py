"""The values of a run's report: its course, cost and samples."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from launcher.compare.comparison import RunResults, summary
from launcher.compare.paired import Change, Paired, last_validation, paired
from launcher.core.errors import UserError
from launcher.health.keys import is_validation_score
from launcher.metrics.intervals import of_seeds
from launcher.metrics.store import Series, SeriesStore
from launcher.metrics.timing import usual_split
from launcher.record.events import LevelChange, read_kind
from launcher.record.info import Edit
from launcher.record.layout import RunDir
from launcher.record.machine import GpuSample
from launcher.runs.watch.history import kept_rises
from launcher.runs.watch.reader import RunReader
from launcher.runs.watch.responses import Dump, Sample, dumps, read
from launcher.runs.watch.run_diagnosis import Explanation
from launcher.runs.watch.run_settings import changes, compared_settings, foreign
from launcher.runs.watch.steps import validation
from launcher.settings import Price

_HOUR = 3600.0
_FEWEST = 20  # minimum number of steps for comparing both ends
_END = 0.2  # share of the steps at each end


class Samples(NamedTuple):
    """Rollout responses: from the first step, and the best and worst of the last one."""

    first: Sample | None = None
    best: Sample | None = None
    worst: Sample | None = None
    first_step: int = 0
    last_step: int = 0


class Use(NamedTuple):
    """The cost of a run: GPU hours, kWh of its GPUs (None without power readings), and the price of the hours."""

    gpus: int
    gpu_hours: float | None = None
    kwh: float | None = None
    cost: float | None = None
    currency: str = ""


class Gain(NamedTuple):
    """Mean reward of the first and last fifth of steps, and their number; `reach`: half the difference's interval."""

    before: float
    after: float
    reach: float
    steps: int


@dataclass(frozen=True)
class RunReport:
    """The whole report. `seconds`: parts of a usual step. `scores`: the last validation's."""

    id: str
    reader: RunReader
    facts: RunResults
    explanation: Explanation | None
    flags: tuple[LevelChange, ...]
    marked: tuple[LevelChange, ...]  # at steps that no later attempt repeated
    changed: tuple[Edit, ...]
    preset: Mapping[str, object]
    gain: Gain | None
    scores: dict[str, float]
    validated: Series | None
    seconds: dict[str, float]
    use: Use
    samples: Samples
    before_and_after: Paired | None

    @property
    def example(self) -> Change | None:
        """The prompt with the largest gain between the first and last validation."""
        found = self.before_and_after
        return found.gained[0] if found and found.gained else None


def gather(run: RunDir, price: Price | None = None) -> RunReport:
    """Reads a whole run. Raises UserError for an unreadable directory."""
    reader = RunReader(run.path)
    while reader.poll() - {"log"}:
        pass
    reader.explain()
    info, _ = compared_settings(run)
    facts = summary(run.id, info, reader.state, reader.series, reader.state.seconds)
    split = usual_split(reader.series)
    return RunReport(
        id=run.id,
        reader=reader,
        facts=facts,
        explanation=reader.explanation if reader.state.failed else None,
        flags=tuple(event for event in read_kind(run.events, LevelChange) if event.alarming),
        marked=tuple(rise for rise in kept_rises(reader.events) if rise.alarming),
        changed=() if foreign(info) else tuple(changes([info])[0]),
        preset=info.preset or {},
        gain=_gain(reader),
        scores=_scores(reader.series),
        validated=validation(reader.series),
        seconds=split.parts if split else {},
        use=_use(reader, facts.duration, price),
        samples=_samples(run),
        before_and_after=_before_and_after(run),
    )


def _scores(store: SeriesStore) -> dict[str, float]:
    """The newest value of each validation score."""
    found = ((key, store.get(key)) for key in filter(is_validation_score, store.keys()))
    return {key: series.last for key, series in found if series is not None and series.last is not None}


def _gain(reader: RunReader) -> Gain | None:
    from launcher.metrics.names import SCORE

    _, score = reader.series.first_of(*SCORE) or (None, Series())
    values = [value for value in score.values if math.isfinite(value)]
    size = int(len(values) * _END)
    if len(values) < _FEWEST:
        return None
    first, last = values[:size], values[-size:]
    error = of_seeds(first, last)
    return Gain(math.fsum(first) / size, math.fsum(last) / size, error.reach() if error else 0.0, size)


def _use(reader: RunReader, seconds: float | None, price: Price | None) -> Use:
    history = reader.machine
    devices: list[GpuSample] = [] if reader.head.on_cpu or history.latest is None else list(history.latest.gpus)
    used = [gpu for gpu in devices if history.series("run_used", gpu.index) is not None] or devices
    hours = len(used) * seconds / _HOUR if used and seconds is not None else None
    cost = hours * price.amount if hours is not None and price else None
    return Use(len(used), hours, history.energy([gpu.index for gpu in used]), cost, price.currency if price else "")


def _samples(run: RunDir) -> Samples:
    found = [dump for dump in dumps(run) if dump.kind == "rollout"]
    if not found:
        return Samples()
    first, last = _read(found[0]), sorted(_read(found[-1]), key=lambda sample: sample.score)
    return Samples(
        first[0] if first else None,
        last[-1] if last else None,
        last[0] if len(last) > 1 else None,
        found[0].step,
        found[-1].step,
    )


def _before_and_after(run: RunDir) -> Paired | None:
    validated = [dump for dump in dumps(run) if dump.kind == "validation"]
    after = last_validation(run)
    if len(validated) < 2 or after is None:
        return None
    try:
        return paired(validated[0], after)
    except (UserError, OSError):
        return None


def _read(dump: Dump) -> list[Sample]:
    try:
        return [sample for sample in read(dump)[0] if math.isfinite(sample.score)]
    except OSError:
        return []
