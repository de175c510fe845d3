"""Tests advice about time: a run continues from a checkpoint twice with and twice without the change.

All four see the same prompts per step, so steps are compared in pairs. The order is control, change, change, control: a
slow phase of the machine favors neither. The change is kept if the interval of the saved seconds is above 0.
docs/evidence/time.md has the share of false positives.
"""

import math
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from launcher.compare.trial_runs import POLL, end, enqueue_fork, skipped
from launcher.core.errors import UserError
from launcher.core.format import counted
from launcher.metrics.intervals import FEWEST, of_blocks
from launcher.metrics.store import SeriesStore
from launcher.record.layout import RunDir
from launcher.record.state import current
from launcher.runs.act.fork import planned_fork
from launcher.runs.act.start import Narrate, silent
from launcher.runs.watch.parent import Parent
from launcher.runs.watch.possible import Verb
from launcher.runs.watch.steps import steps
from launcher.timing.advice import Advice
from launcher.timing.report import Timing

WARM = 2  # first steps of each run, in which kernels and caches are made
COMPARED = FEWEST // 2  # fewest steps of a run after them
STEPS = WARM + COMPARED
ORDER = (False, True, True, False)  # whether each run has the change; each half is one pair
_APART = 0.02  # share of a step by which two equal processes may differ, invisible in pairs of steps


@dataclass(frozen=True)
class FasterPlan:
    """From `step` of `run` to step `until`, with and without the advice."""

    run: RunDir
    advice: Advice
    step: int
    until: int

    @property
    def lines(self) -> tuple[str, str]:
        """The advice, and the runs that test it."""
        place = f"step {self.step}" if self.step else "the start"
        return (
            f"{self.advice.title}: {self.advice.offers[0].text}",
            f"four runs from {place} to step {self.until}, two of them unchanged",
        )


@dataclass(frozen=True)
class Proof:
    """Seconds per step of both, and saved ones with their interval; `control`, `changed`: runs to continue with."""

    control: str
    changed: str
    setting: str
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

    def to_json(self) -> Mapping[str, object]:
        """For `--json`."""
        return asdict(self) | {"proven": self.proven}


def plan(run: RunDir, *, count: int | None = None, at: int | None = None) -> FasterPlan:
    """Plans the two runs, from the newest or the named checkpoint. Raises UserError without advice."""
    parent = Parent(run)
    parent.require(Verb.FORK)
    timing = Timing(run)
    timing.poll(live=False)
    store = SeriesStore()
    for number, record in steps(run):
        store.add_all([record], number)
    advice = next((each for each in timing.advice(store) if each.settings), None)
    if advice is None:
        raise UserError(f"no known setting could make run {run.id} faster", f"'ppo-tui time {run.id}' has more")
    step = [0, *parent.checkpoints][-1] if at is None else at
    planned_fork(parent, list(advice.settings), step=step)
    return FasterPlan(run, advice, step, step + max(count or STEPS, STEPS))


def carry_out(planned: FasterPlan, narrate: Narrate = silent, *, force: bool = False) -> Proof:
    """Runs all four through the queue and compares them; an interruption ends them. Raises UserError if one fails."""
    runs: list[RunDir] = []
    going: list[RunDir] = []
    try:
        for changed in ORDER:
            change = planned.advice.settings if changed else ()
            run = enqueue_fork(planned.run, [*change, f"trainer.steps={planned.until}"], planned.step, force=force)
            runs.append(run)
            going.append(run)
            narrate(f"queued {run.id}: {' '.join(change) or 'a control run'}")
        while going:
            time.sleep(POLL)
            going = [run for run in going if not _over(run)]
    finally:
        for run in going:
            end(run)
    return prove(planned, runs)


def prove(planned: FasterPlan, runs: Sequence[RunDir]) -> Proof:
    """Compares the runs of a plan, in `ORDER`. Raises UserError for two with too few common steps."""
    before, after = list[float](), list[float]()
    for pair in (runs[:2], runs[:1:-1]):
        slow, fast = (_seconds(run) for run in pair)
        shared = sorted(step for step in slow.keys() & fast.keys() if step > planned.step + WARM)
        if len(shared) < COMPARED:
            control, changed = (run.id for run in pair)
            raise UserError(
                f"{counted(len(shared), 'step')} in common: too few to compare {control} and {changed}",
                f"'ppo-tui diagnose {changed}' explains a run that ended early",
            )
        before += [slow[step] for step in shared]
        after += [fast[step] for step in shared]
    gaps = [old - new for old, new in zip(before, after, strict=True)]
    saved, now = statistics.fmean(gaps), statistics.fmean(before)
    reach = math.hypot(of_blocks(gaps).reach(), _APART * now)  # half the width of the interval, in seconds
    return Proof(
        runs[0].id,
        runs[1].id,
        " ".join(planned.advice.settings),
        now,
        statistics.fmean(after),
        saved,
        saved - reach,
        saved + reach,
        len(gaps),
    )


def _over(run: RunDir) -> bool:
    """Whether a run has ended. Raises UserError for one that cannot start."""
    if run.path.exists():
        return not current(run, checks=False).going
    reason = skipped(run)
    if reason is not None:
        raise UserError(f"run {run.id} cannot start: {reason}")
    return False


def _seconds(run: RunDir) -> dict[int, float]:
    """Seconds per step, from the spans."""
    timing = Timing(run, whole=True)
    timing.poll(live=False)
    return timing.seconds()
