"""Step time by parts, from the names of its stages (launcher/timing/stages.toml), and the remaining time."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from launcher.metrics.records import StepRecord
from launcher.metrics.store import SeriesStore

ROLLOUT = ("gen", "gen_max", "switch_wait", "wait_for_enough_samples")
PARTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    # In veRL 0.9 with the rewards. Asynchronous trainers log the time that they wait for responses as `gen`,
    # and apart from it that in which their own GPUs help to generate; ReMax has greedy responses as well.
    ("rollout", ROLLOUT),
    ("log-prob", ("old_log_prob",)),
    ("reference", ("ref",)),
    ("critic", ("values", "update_critic")),
    ("update", ("update_actor",)),
)
OTHER = "other"  # rewards of their own, advantages, weights to the engine, checkpoints
STEP = ("timing_s/step", "perf/time_per_step")
RECENT = 20  # steps of the median that is "usual"


@dataclass(frozen=True)
class Split:
    """Seconds per part of one step, in the order of `PARTS` and then `other`, and the total."""

    parts: dict[str, float]

    @property
    def seconds(self) -> float:
        return sum(self.parts.values())

    def share(self, part: str) -> float:
        """0 to 1; 0 for a step without duration."""
        return self.parts[part] / self.seconds if self.seconds > 0 else 0.0


def seconds_of(data: Mapping[str, float]) -> float:
    """Duration of a step with validation and saving; 0 if not logged."""
    step = data.get("timing_s/step", data.get("perf/time_per_step", 0.0))
    parts = (step, data.get("timing_s/testing", 0.0), data.get("timing_s/save_checkpoint", 0.0))
    return sum(part for part in parts if 0 <= part < 1e7)  # excludes nan and invalid values


def timer_seconds(data: Mapping[str, float], timer: str) -> float:
    """Duration of one timer of a step; 0 if not logged."""
    seconds = data.get(f"timing_s/{timer}", 0.0)
    return seconds if seconds > 0 else 0.0


def median_and_longest(taken: Sequence[float] | None) -> tuple[float | None, float | None]:
    """Median and maximum of durations; None without any."""
    return (statistics.median(taken), max(taken)) if taken else (None, None)


def date_log(records: Sequence[StepRecord], read: float, before: float, written: float) -> None:
    """Dates steps that were read from a log at once (`read`): by the log, or backwards from its last write (`written`).

    A step without a duration gets an equal share of the time since the step `before` (0: none).
    """
    share = (written - before) / len(records) if before and records else 0.0
    for record in reversed(records):
        record.t = max(before, written) if record.t == read else record.t
        written = record.t - (seconds_of(record.data) or share)


def last_split(store: SeriesStore) -> Split | None:
    """The newest step with logged times; None without one."""
    timed = store.first_of(*STEP)
    return _split(store, timed[1].steps[-1]) if timed and timed[1].steps else None


def usual_split(store: SeriesStore) -> Split | None:
    """The median of each part over the recent steps; None with fewer than two."""
    timed = store.first_of(*STEP)
    if timed is None:
        return None
    recent = [split for step in timed[1].steps[-RECENT:] if (split := _split(store, step))]
    if len(recent) < 2:
        return None
    return Split({part: statistics.median(split.parts[part] for split in recent) for part in recent[0].parts})


def _split(store: SeriesStore, step: int) -> Split | None:
    """The split of one step; None if its total or all parts are missing."""
    whole = store.finite(step, *STEP)
    if whole is None:
        return None
    parts = {part: sum(store.finite(step, f"timing_s/{name}") or 0.0 for name in names) for part, names in PARTS}
    if not any(parts.values()):
        return None  # a validation, or a version that logs no times
    return Split({**parts, OTHER: max(whole - sum(parts.values()), 0.0)})
