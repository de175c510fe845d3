"""Proving an advice about time: a run continues from a checkpoint with and without the change, and their steps compare.

Both see the same prompts in the same steps, so steps are compared in pairs. The change is kept where the interval of
the saved seconds is above 0.
"""

import statistics
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from launcher.compare.trial_runs import POLL, end, enqueue_fork, skipped
from launcher.core.errors import UserError
from launcher.metrics.intervals import FEWEST, of_blocks
from launcher.metrics.store import SeriesStore
from launcher.record.layout import RunDir
from launcher.record.state import current
from launcher.runs.act.fork import fork_steps, planned_fork, refuse_parent
from launcher.runs.act.start import Narrate, silent
from launcher.runs.watch.steps import steps
from launcher.timing.advice import Advice
from launcher.timing.report import Timing

WARM = 2  # first steps of each run, in which kernels and caches are made
STEPS = WARM + FEWEST


@dataclass(frozen=True)
class Plan:
    """From `step` of `run` to step `until`, once as it is and once with the advice."""

    run: RunDir
    advice: Advice
    step: int
    until: int


@dataclass(frozen=True)
class Proof:
    """What came out: seconds per step of both, and those that the change saves with their interval."""

    control: str
    changed: str
    setting: str
    predicted: float
    before: float
    after: float
    saved: float
    low: float
    high: float
    steps: int

    @property
    def proven(self) -> bool:
        """Whether the change is kept."""
        return self.low > 0

    def to_json(self) -> dict[str, Any]:
        """For `--json`."""
        return asdict(self) | {"proven": self.proven}


def plan(run: RunDir, *, count: int | None = None, at: int | None = None) -> Plan:
    """Plans the two runs, from the newest checkpoint or the one named. Raises UserError without an advice."""
    refuse_parent(run)
    timing = Timing(run)
    timing.poll(live=False)
    store = SeriesStore()
    for number, record in steps(run):
        store.add_all([record], number)
    advice = timing.advice(store)
    if advice is None:
        raise UserError(f"no setting is known that would make run {run.id} faster", f"'ppo-tui time {run.id}' has more")
    kept = [0, *fork_steps(run)]
    step = kept[-1] if at is None else at
    if step not in kept:
        raise UserError(f"--at {at}: run {run.id} has no checkpoint of this step", f"use one of {_list(kept)}")
    planned_fork(run, [advice.setting], step=step)
    return Plan(run, advice, step, step + max(count or STEPS, STEPS))


def carry_out(planned: Plan, narrate: Narrate = silent, *, force: bool = False) -> Proof:
    """Runs both through the queue and compares them. An interruption ends them. Raises UserError where one fails."""
    both: list[RunDir] = []
    going: list[RunDir] = []
    try:
        for change in ((), (planned.advice.setting,)):
            chosen = [*change, f"trainer.steps={planned.until}"]
            run = enqueue_fork(planned.run, chosen, planned.step, force=force)
            both.append(run)
            going.append(run)
            narrate(f"queued {run.id}: {' '.join(change) or 'the control run'}")
        while going:
            time.sleep(POLL)
            going = [run for run in going if not _over(run)]
    finally:
        for run in going:
            end(run)
    return prove(planned, *both)


def prove(planned: Plan, control: RunDir, changed: RunDir) -> Proof:
    """Compares two runs of a plan. Raises UserError where they have too few steps in common."""
    before, after = _seconds(control), _seconds(changed)
    first = planned.step + WARM
    shared = sorted(step for step in before.keys() & after.keys() if step > first)
    if len(shared) < FEWEST:
        raise UserError(
            f"{len(shared)} steps in common are too few to compare {control.id} and {changed.id}",
            f"'ppo-tui diagnose {changed.id}' explains a run that ended early",
        )
    gaps = [before[step] - after[step] for step in shared]
    mean, reach = statistics.fmean(gaps), of_blocks(gaps).reach()
    slow, fast = (statistics.fmean(each[step] for step in shared) for each in (before, after))
    setting, predicted = planned.advice.setting, planned.advice.saved
    return Proof(control.id, changed.id, setting, predicted, slow, fast, mean, mean - reach, mean + reach, len(shared))


def _over(run: RunDir) -> bool:
    """Whether a run has ended. Raises UserError for one that cannot start."""
    if run.path.exists():
        return not current(run, checks=False).going
    reason = skipped(run)
    if reason is not None:
        raise UserError(f"run {run.id} cannot start: {reason}")
    return False


def _seconds(run: RunDir) -> dict[int, float]:
    """Seconds of each step, by the spans."""
    timing = Timing(run, whole=True)
    timing.poll(live=False)
    return timing.seconds()


def _list(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))
