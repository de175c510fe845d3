"""Tries the fixes of a flag: a control run and one run per fix, from the checkpoint before it, in the queue.

A failure is isolated in the same way, with the run's own steps as the control.
"""

import contextlib
import json
import math
import os
import statistics
import subprocess
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from launcher import settings
from launcher.compare.isolation import ISOLATION, failure_of
from launcher.compare.trial_verdicts import DIFFERENT, facts_of, judge, settled, waiting_trials
from launcher.core import paths
from launcher.core.errors import UserError
from launcher.core.format import counted, duration
from launcher.core.text import near_hint
from launcher.health.catalogue import rules
from launcher.machine.sampler import VISIBLE, visible
from launcher.metrics.timing import seconds_of
from launcher.preset.files import restore
from launcher.preset.settle import settings_of
from launcher.record import queued
from launcher.record.layout import RunDir
from launcher.record.state import current
from launcher.runs.act.fork import planned_fork
from launcher.runs.act.queue_runner import add
from launcher.runs.act.start import Narrate, silent
from launcher.runs.act.stop import stop
from launcher.runs.supervise.spawn import detached
from launcher.runs.watch.history import Onset, alarms
from launcher.runs.watch.last_change import Change
from launcher.runs.watch.parent import Parent
from launcher.runs.watch.possible import Verb
from launcher.runs.watch.proposals import proposals
from launcher.runs.watch.turns import free_gpus, turns
from launcher.verl.config import GPUS, NODES

POLL = 1.0  # seconds
_CORES = 2  # cores that a run on the CPU keeps busy
_ASK = 10.0  # seconds between two reports of the queue's reasons
_MORE = 12  # steps after the one at which the flag was up: as many as it takes to compare rewards


@dataclass(frozen=True)
class TrialPlan:
    """The trials from `step` of `run` to step `until`; `arms`: settings of each trial, the control run first.

    `onset`: a flag, or an isolated failure. `seconds`: duration of one trial, None if unknown. `gpus`: GPUs needed, 0
    on a CPU. `side`: how many fit on this machine at once. `change`: what the first trial after the control run undoes,
    if any. `reasons`: the proposals' reasons.
    """

    run: RunDir
    onset: Onset
    step: int
    until: int
    arms: tuple[tuple[str, ...], ...]
    seconds: float | None
    gpus: int
    side: int
    change: Change | None = None
    reasons: Mapping[tuple[str, ...], str] = field(default_factory=dict)

    def undoes(self, arm: Sequence[str]) -> str | None:
        """What a trial undoes, such as "what the fork changed"."""
        return self.change.words if self.change is not None and tuple(arm) == settings_of(self.change.undone) else None

    @property
    def lines(self) -> list[str]:
        """The changes per trial, in words."""
        changes = ((" ".join(arm) or "control run", self.reasons.get(arm)) for arm in self.arms)
        return [f"  {words} ({reason})" if reason else f"  {words}" for words, reason in changes]

    @property
    def wall(self) -> float | None:
        """Seconds for all trials; parallel trials on the CPU share its cores."""
        together = min(self.side, len(self.arms))
        shared = 1.0 if self.gpus else max(1.0, together * _CORES / (os.cpu_count() or _CORES))
        return None if self.seconds is None else self.seconds * shared * math.ceil(len(self.arms) / self.side)

    @property
    def name(self) -> str:
        """The flag, and the first and last step of its trials."""
        place = f"step {self.step}" if self.step else "the start"
        return f"{self.onset.told}; trials from {place} to step {self.until}"

    @property
    def cost(self) -> str:
        """The cost of the trials in words."""
        time_ = "unknown" if self.wall is None else f"about {duration(self.wall)}"
        how = f", {self.side} at a time" if self.side > 1 else ", one after another" if len(self.arms) > 1 else ""
        used = f", {self.gpu_minutes:.0f} GPU minutes" if self.gpu_minutes else "" if self.gpus else ", no GPU"
        return f"{time_}{how}{used}"

    @property
    def gpu_minutes(self) -> float | None:
        """The GPU minutes of all trials."""
        return None if self.seconds is None else self.seconds * len(self.arms) * self.gpus / 60


def plan(
    run: RunDir,
    rule: str | None = None,
    changes: Sequence[Sequence[str]] = (),
    *,
    count: int | None = None,
    at: int | None = None,
    most: int = 3,
) -> TrialPlan:
    """Plans the trials of a flag [default: the first CRITICAL one, otherwise WARN].

    Tries at most `most` of its `proposals`, or `changes` instead. `count`: number of steps. `at`: the checkpoint.
    Raises UserError.
    """
    parent = Parent(run)
    parent.require(Verb.FORK)
    if not changes and (waiting := waiting_trials(run.id)):
        raise UserError(f"{counted(len(waiting), 'trial')} of run {run.id} already in the queue", "see 'ppo-tui queue'")
    onset, changes = _subject(parent, rule, changes)
    isolated = onset.rule == ISOLATION
    before = max((each for each in parent.checkpoints if each < onset.rose), default=0)
    step = at if at is not None else before if isolated else parent.fork_step(onset)
    change, reasons = None, dict[tuple[str, ...], str]()
    for arm in ((), *changes):  # reports a missing checkpoint or a misspelled key before the first trial
        planned_fork(parent, arm, step=step)
    if not changes:
        found, change = proposals(parent, onset, step)
        reasons = {each.settings: each.reason for each in found[:most]}
        changes = [*reasons]
        if not changes:
            raise UserError(f"{onset.rule} suggests no setting to try", f"pass one: ppo-tui try {run.id} KEY=VALUE")
    until = step + (count or max(onset.rose - step, 1) + (1 if isolated else _MORE))
    gpus = 0 if parent.info.on_cpu else int(parent.config.get(GPUS) or 1) * int(parent.config.get(NODES) or 1)
    side = max(len(free_gpus(visible(os.environ))) // gpus if gpus else settings.max_cpu_runs(), 1)
    arms = tuple(map(tuple, changes if isolated else [(), *changes]))
    return TrialPlan(run, onset, step, until, arms, _seconds(parent, until - step), gpus, side, change, reasons)


def _subject(run: Parent, rule: str | None, changes: Sequence[Sequence[str]]) -> tuple[Onset, Sequence[Sequence[str]]]:
    """The flag or failure to try, and its changes, as far as known. Raises UserError."""
    if rule is not None and rule not in rules():
        raise UserError(f"no health rule named {rule!r}", near_hint(rule.upper(), rules()))
    failure = None if rule else failure_of(run)
    if failure is not None and not changes:
        isolating = next((each.edits for each in run.offers if each.fix.isolates and each.edits), ())
        if isolating:
            return failure, [settings_of(isolating)]
    onset = run.onset(rule) or (failure if changes else None)
    if onset is not None:
        return onset, changes
    never = f"{rule or 'no check'} {'never' if rule else 'ever'} rose to WARN or CRITICAL in run {run.id}"
    if failure is None:
        raise UserError(never, f"'ppo-tui health {run.id}' shows its rules")
    unknown = "no known setting turns the failing code off"
    raise UserError(f"{never}, and {unknown}", f"name one to isolate: ppo-tui try {run.id} KEY=VALUE")


def start_apart(
    planned: TrialPlan, changes: Sequence[Sequence[str]] = (), *, force: bool = False
) -> "subprocess.Popen[bytes]":
    """Runs the trials of a plan in a separate process; `changes`: as given to `plan`. Raises OSError."""
    options = {
        "rule": None if planned.onset.rule == ISOLATION else planned.onset.rule,
        "changes": changes,
        "count": planned.until - planned.step,
        "at": planned.step,
        "most": max(len(planned.arms) - 1, 1),
    }
    words = [planned.run.id, json.dumps(options), "force" if force else ""]
    planned.run.trials_log.write_bytes(b"")
    return detached(["launcher.compare.trial_process", *words], planned.run.trials_log)


def try_apart(run: RunDir, *options: str) -> None:
    """Runs `ppo-tui try` in a separate process, which writes trials.log. Raises OSError."""
    run.trials_log.write_bytes(b"")
    detached(["launcher.cli.main", "try", run.id, *options, "--yes"], run.trials_log)


def enqueue(planned: TrialPlan, changes: Sequence[str], *, force: bool) -> RunDir:
    """Adds a trial to the queue, on any GPUs; returns its future run. Raises UserError."""
    chosen = [*changes, f"trainer.steps={planned.until}"]
    rule, undone = planned.onset.rule, planned.undoes(changes)
    return enqueue_fork(planned.run, chosen, planned.step, force=force, trial=rule, undoes=undone)


def enqueue_fork(
    run: RunDir, chosen: Sequence[str], step: int, *, force: bool, trial: str | None = None, undoes: str | None = None
) -> RunDir:
    """Adds a fork to the queue, on any GPUs; returns its future run. Raises UserError."""
    fork = planned_fork(Parent(run), chosen, step=step, trial=trial, undoes=undoes)
    snapshot = fork.loaded.snapshot()
    if isinstance(env := snapshot.get("env"), dict):  # the queue's variables for the parent
        snapshot["env"] = {name: value for name, value in env.items() if name != VISIBLE}
    return add(replace(fork, loaded=restore(fork.loaded.name, snapshot, chosen)), force=force).run


def carry_out(
    planned: TrialPlan,
    narrate: Narrate = silent,
    *,
    force: bool = False,
    begin: Callable[..., RunDir] = enqueue,
    poll: float = POLL,
) -> list[RunDir]:
    """Runs the trials, each until its verdict is clear, and at most until the control run ends without the flag.

    Returns the started ones. Omits a trial that cannot start, with the reason; for the control run this is a UserError.
    An interruption ends all. `begin` starts or queues one, as `enqueue` does.
    """
    runs, waits = list[RunDir](), _Waits(narrate)
    going: dict[str, tuple[RunDir, Sequence[str]]] = {}
    try:
        for arm in planned.arms:
            try:
                run = begin(planned, arm, force=force)
            except UserError as refused:
                if not arm:
                    raise
                narrate(f"left out {' '.join(arm)}: {refused}")
                continue
            runs.append(run)
            going[run.id] = run, arm
            narrate(f"queued {run.id}: {' '.join(arm) or 'the control run'}")
        while going:
            time.sleep(poll)
            waits.look(going)
            for run, changes in list(going.values()):
                if _over(run, changes, narrate):
                    del going[run.id]
            if going and _finished_without_flag(runs[0], planned.run):
                narrate("the flag did not rise again in the unchanged control run, so no fix can be judged")
                break
    finally:
        for run, _ in going.values():
            end(run)
    return [run for run in runs if run.path.exists()]


class _Waits:
    """Reports why the next trial waits in the queue, each reason once."""

    def __init__(self, narrate: Narrate) -> None:
        self._narrate, self._told, self._looked = narrate, "", -_ASK

    def look(self, going: Collection[str]) -> None:
        """Looks occasionally; trials that wait for another one have no reason of their own."""
        if time.monotonic() - self._looked < _ASK:
            return
        self._looked = time.monotonic()
        turn = next((each for each in turns() if each.entry.id in going), None)
        if turn is None or any((paths.runs_dir() / id).exists() for id in going):
            return
        told = f"{turn.entry.id} waits in the queue {paths.queue_dir()}: {turn.waits}"
        if turn.waits and told != self._told:
            self._told = told
            self._narrate(told)


def _over(run: RunDir, changes: Sequence[str], narrate: Narrate) -> bool:
    """Whether a trial ended, was stopped because its verdict is clear, or cannot start."""
    if not run.path.exists():
        reason = skipped(run)
        if reason is None:
            return False
        if not changes:
            raise UserError(f"the control run cannot start: {reason}")
        narrate(f"left out {' '.join(changes)}: {reason}")
        return True
    state, facts = current(run, checks=False), facts_of(run)
    if not state.going:
        if not changes and state.failed and facts is not None and not facts.scores.steps:
            raise UserError(f"the control run {run.id} did not start: {state.error or state.state}", "try again")
        return True
    if facts is None or not settled(facts):
        return False
    narrate(f"the verdict on {run.id} is clear at step {facts.last}")
    stop(run, by="trial: the verdict is clear", wait=True)
    return True


def skipped(run: RunDir) -> str | None:
    """Why a queued run will not start, and removes it; None while it waits or after its start."""
    entry = next((each for each in queued.entries() if each.id == run.id), None)
    if run.path.exists() or (entry is not None and entry.skipped is None):
        return None
    if entry is None:
        return "it was removed from the queue"
    with contextlib.suppress(UserError):  # retried
        entry.remove()
        return entry.skipped
    return None


def _finished_without_flag(control: RunDir, parent: RunDir) -> bool:
    """Whether the control run reached its end without the flag."""
    facts = facts_of(control) if control.path.exists() else None
    return facts is not None and judge([facts], alarms(parent))[0].verdict == DIFFERENT


def end(run: RunDir) -> None:
    """Takes a trial out of the queue, or stops it."""
    while entry := next((each for each in queued.entries() if each.id == run.id), None):
        with contextlib.suppress(UserError):  # being started
            entry.remove()
        time.sleep(POLL)
    if run.path.exists() and current(run, checks=False).going:
        stop(run, by="trial: ended", wait=True)


def _seconds(run: Parent, count: int) -> float | None:
    """Seconds of a trial with `count` steps: the start of the first attempt, then median steps."""
    paces = [seconds for record in run.steps if (seconds := seconds_of(record.data)) > 0]
    numbers = run.run.attempt_numbers()
    if not paces or not numbers:
        return None
    created, first = run.run.attempt(numbers[0]).read_launch().created, run.steps[0]
    start = first.t - seconds_of(first.data) - created if created and first.t else 0.0
    return max(start, 0.0) + count * statistics.median(paces)
