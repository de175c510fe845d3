"""Injects faults into a run's own metrics: which rule would flag them, when, and at which level."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from launcher.core.errors import UserError
from launcher.health import keys
from launcher.health.checklist import Checklist
from launcher.health.config import RunConfig
from launcher.health.faults import FAULTS, Fault
from launcher.metrics.records import StepRecord
from launcher.record.layout import RunDir
from launcher.record.levels import Level
from launcher.runs.watch.run_checklist import judged
from launcher.runs.watch.source import LogFile

_WARM_UP = 10  # training steps before the fault: most rules judge from the ninth on
_SHOWN = 10  # steps that a fault needs at least
_USUAL = 35  # where the evaluation of the rules begins
_WATCHED, _WATCHED_SLOW = 60, 120  # steps of a fault


class Alarm(NamedTuple):
    """A level that was first reached `after` so many steps of the fault (0: at the first), and by which rule."""

    rule: str
    after: int


class Tested(NamedTuple):
    """The result of one fault; `skipped` says why it was not tried.

    `alarms` are those that the run does not have without the fault.
    """

    fault: str
    skipped: str = ""
    alarms: Mapping[Level, Alarm] = {}


def selftest(source: RunDir | LogFile, at: int | None, config: Sequence[str]) -> tuple[int, int, Iterator[Tested]]:
    """The last step without a fault, the number of steps judged after it, and the result of each fault.

    `at` is that step: 35 training steps into the run by default, or half of a shorter one. Raises UserError for a run
    that is too short. `config`: as for `judged`.
    """
    result = judged(source, config)
    records = [record for record in result.in_order if any(keys.is_training(key) for key in record.data)]
    place = _place([record.step for record in records], at)
    checklist = result.new()
    for record in records[:place]:
        checklist.step(record.step, record.data, t=record.t)
    longest = max((record.data.get(keys.LENGTH_MAX[0], 0.0) for record in records), default=0.0)
    start = {**records[place - 1].data, "limit": RunConfig(result.keys).response_limit or longest}
    after = records[place : place + _WATCHED_SLOW]
    usual = list(_levels(copy.deepcopy(checklist), after))
    results = (_tested(fault, checklist, start, after, usual) for fault in FAULTS)
    return records[place - 1].step, len(after), results


def _place(steps: Sequence[int], at: int | None) -> int:
    """How many training steps stay unchanged."""
    if len(steps) < _WARM_UP + _SHOWN:
        least = _WARM_UP + _SHOWN
        raise UserError(f"the run has {len(steps)} training steps, and a self-test needs at least {least}")
    if at is None:
        return min(_USUAL, len(steps) // 2)
    first, last = steps[_WARM_UP - 1], steps[-_SHOWN - 1]
    if not first <= at <= last:
        raise UserError(f"--at {at} is not allowed", f"use a step from {first} to {last} of this run")
    return sum(step <= at for step in steps)


def _levels(judge: Checklist, records: Sequence[StepRecord]) -> Iterator[dict[str, Level]]:
    """The level of every rule after each of these steps."""
    levels = {check.rule: check.level for check in judge.checks()}
    for record in records:
        changes = judge.step(record.step, record.data, t=record.t)
        levels = levels | {change.rule: change.after for change in changes}
        yield levels


def _tested(
    fault: Fault,
    checklist: Checklist,
    start: dict[str, float],
    after: Sequence[StepRecord],
    usual: Sequence[Mapping[str, Level]],
) -> Tested:
    meant = [check for check in checklist.checks() if check.rule in fault.rules]
    if meant[0].level >= Level.WARN:
        return Tested(fault.name, f"{meant[0].rule} is already raised")
    if all(check.level == Level.N_A for check in meant):
        return Tested(fault.name, f"{meant[0].rule} is not judged: {meant[0].message}")
    after = after[: _WATCHED_SLOW if fault.slow else _WATCHED]
    faulty = [StepRecord(record.step, record.t, None, dict(record.data)) for record in after]
    try:
        if not fault.fits(start):
            return Tested(fault.name, "the metric is already at that value")
        for n, record in enumerate(faulty):
            fault.change(record.data, n, start)
    except KeyError as missing:
        return Tested(fault.name, f"{missing.args[0]} is not logged")
    if all(new.data == old.data for new, old in zip(faulty, after, strict=True)):
        return Tested(fault.name, "the metric is not logged, or already at that value")
    alarms: dict[Level, Alarm] = {}
    for n, (now, without) in enumerate(zip(_levels(copy.deepcopy(checklist), faulty), usual, strict=False)):
        new = {rule: level for rule, level in now.items() if level > max(without[rule], Level.OK)}
        for level in (Level.NOTICE, Level.WARN, Level.CRITICAL):
            rules = [rule for rule, reached in new.items() if reached >= level]
            if rules and level not in alarms:
                # the one that is meant, if it speaks at the same time as others
                alarms[level] = Alarm(next((rule for rule in rules if rule in fault.rules), rules[0]), n)
    return Tested(fault.name, "", alarms)
