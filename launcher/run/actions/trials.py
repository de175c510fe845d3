"""Trying the fixes of a flag: an untouched twin and each fix, from the checkpoint before it, one after another."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from launcher.errors import UserError
from launcher.health.values import tried_values
from launcher.metrics.timing import seconds_of
from launcher.preset import hydra
from launcher.preset.remedy import configuration
from launcher.record.layout import RunDir
from launcher.record.state import current
from launcher.run.actions.fork import fork, fork_step, refuse_parent
from launcher.run.actions.start import Narrate, silent
from launcher.run.actions.stop import stop
from launcher.run.reading.checkpoints import checkpoint_steps
from launcher.run.reading.onset import Onset, first_onset
from launcher.run.reading.steps import steps
from launcher.run.reading.trials import facts_of, settled
from launcher.verl_config import GPUS, NODES

POLL = 1.0  # seconds
_MORE = 10  # steps after the one at which the flag was up


@dataclass(frozen=True)
class Plan:
    """What is tried: from `step` of `run` on, to step `until`; `arms` are the settings of each trial, the twin first.

    `seconds` is what they take one after another, None when nothing is known; `gpus` how many each takes, 0 on a CPU.
    """

    run: RunDir
    onset: Onset
    step: int
    until: int
    arms: tuple[tuple[str, ...], ...]
    seconds: float | None
    gpus: int

    @property
    def gpu_minutes(self) -> float | None:
        """What it costs."""
        return None if self.seconds is None else self.seconds * self.gpus / 60


def plan(
    run: RunDir,
    rule: str | None = None,
    changes: Sequence[Sequence[str]] = (),
    *,
    count: int | None = None,
    at: int | None = None,
    most: int = 3,
) -> Plan:
    """Plans the trials of a flag, the first CRITICAL one (else WARN) when none is named.

    `changes` are tried in place of the advised fixes, of which the first `most` are. `count` is the number of steps,
    `at` the checkpoint. Raises UserError.
    """
    info = refuse_parent(run)
    onset = first_onset(run, rule)
    if onset is None:
        named = f"{rule} never rose" if rule else "no check ever rose"
        raise UserError(f"{named} to WARN or CRITICAL in run {run.id}; 'ppo-tui health {run.id}' shows its checks")
    step = fork_step(run, onset) if at is None else at
    if at and at not in checkpoint_steps(run):
        raise UserError(f"--at {at}: run {run.id} has no checkpoint of this step")
    config = configuration(info.preset or {})
    if not changes:
        advised = next((check.fixes for check in current(run).checks if check.rule == onset.rule), ())
        now = {each.key: config.get(each.key) for each in advised if each.key}
        found = tried_values(onset.rule, advised, now, step)
        changes = [[f"{key}={hydra.quote(value)}"] for key, value in found][:most]
        if not changes:
            raise UserError(f"no fix of {onset.rule} is a setting that could be tried; name one, as KEY=VALUE")
    until = step + (count or max(onset.rose - step, 1) + _MORE)
    gpus = 0 if info.on_cpu else int(config.get(GPUS) or 1) * int(config.get(NODES) or 1)
    seconds = _seconds(run, until - step)
    arms = ((), *map(tuple, changes))
    return Plan(run, onset, step, until, arms, seconds and seconds * len(arms), gpus)


def carry_out(
    planned: Plan,
    narrate: Narrate = silent,
    *,
    force: bool = False,
    begin: Callable[..., RunDir] = fork,
    poll: float = POLL,
) -> list[RunDir]:
    """Runs the trials one after another, each until its verdict is clear; returns their runs.

    One that the preflight refuses is left out with the reason, unless it is the twin. An interruption stops the trial
    that goes on. `begin` starts one, as `fork` does.
    """
    from launcher.preflight.gate import Refused

    runs: list[RunDir] = []
    for number, changes in enumerate(planned.arms):
        narrate(f"trial {number + 1} of {len(planned.arms)}: {' '.join(changes) or 'the untouched twin'}")
        settings = [*changes, f"trainer.steps={planned.until}"]
        try:
            run = begin(planned.run, settings, narrate, step=planned.step, force=force, trial=planned.onset.rule)
        except (Refused, UserError) as refused:
            if not changes:
                raise
            narrate(f"left out: {refused}")
            continue
        runs.append(run)
        _await(run, narrate, poll)
    return runs


def _await(run: RunDir, narrate: Narrate, poll: float) -> None:
    """Until the trial has ended, or has shown what it can."""
    try:
        while current(run, checks=False).going:
            facts = facts_of(run)
            if facts is not None and settled(facts):
                narrate(f"the verdict on {run.id} is clear at step {facts.last}")
                stop(run, by="trial: the verdict is clear", wait=True)
                return
            time.sleep(poll)
    except KeyboardInterrupt:
        stop(run, by="user", wait=True)
        raise


def _seconds(run: RunDir, count: int) -> float | None:
    """What a trial of so many steps takes: as long to start as the run's first attempt, then its median step."""
    records = [record for _, record in steps(run)]
    paces = [seconds for record in records if (seconds := seconds_of(record.data)) > 0]
    numbers = run.attempt_numbers()
    if not paces or not numbers:
        return None
    created = run.attempt(numbers[0]).read_launch().created
    start = records[0].t - seconds_of(records[0].data) - created if created and records[0].t else 0.0
    return max(start, 0.0) + count * statistics.median(paces)
