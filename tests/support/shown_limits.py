"""Follows the level of each checklist row only by the limits that it shows."""

import math
import random
from collections.abc import Iterable, Mapping, Sequence

from launcher.health.checklist import Checklist
from launcher.health.clauses import Measure, within
from launcher.health.rules import ALL
from launcher.health.state import Reading, State
from launcher.record.check import Bound, Check
from launcher.record.levels import Level, crossed
from launcher.runs.watch.check_words import limits_by_metric

_ANY_MODE = {
    "data.max_response_length": 256,
    "trainer.v1.trainer_mode": "separate_async",
    "data.train_batch_size": 8,
    "actor_rollout_ref.rollout.multi_turn.tool_config_path": "tools.yaml",
}
_ALSO = ("response_length/max", "training/rollout_probs_diff_valid", "timing_s/testing")
_STEPS = 60


def any_run(seed: int) -> tuple[Checklist, list[dict[str, float]]]:
    """Steps in which every metric of a rule randomly drifts, jumps, stays or is missing."""
    names = {key for kind in ALL for group in kind.needs + kind.also for key in group} - {"actor/lr(1e-4)"}
    steps: list[dict[str, float]] = [{"actor/pg_loss": 0.1} for _ in range(_STEPS)]
    for name in sorted({*names, *_ALSO}):
        rng = random.Random(f"{seed} {name}")  # a new rule changes no other metric
        size, trend, missing = 10 ** rng.uniform(-4, 1), rng.uniform(0.8, 1.3), 0.3 * rng.random()
        noise = rng.choice((0.05, 0.5))
        for step, data in enumerate(steps):
            jump = 50 if rng.random() < 0.02 else 1
            if rng.random() > missing:
                data[name] = size * trend**step * rng.lognormvariate(0, noise) * jump
    return Checklist(_ANY_MODE, gpu_total_gb=30.0, host_total_gb=100.0), steps


class _Implied:
    """The level of one row by its displayed limits: it rises, also at once, and clears as in `State`."""

    def __init__(self, check: Check) -> None:
        self._state = State(*check.debounce)

    def follow(self, check: Check, worse: float, harm: str) -> Level:
        raw, fixed = _risen(check.bounds), _risen(bound for bound in check.bounds if bound.fixed)
        held = max((bound.level for bound in check.bounds if bound.holds and bound.crossed), default=Level.OK)
        raising, releasing = ([(1.0, [(level, ">", 0.0)], Measure(fixed=True))] for level in (fixed, held))
        self._state.push(0, Reading(raw, "", raising, releasing, worse=worse, harm=harm))
        return self._state.level


def _risen(bounds: Iterable[Bound]) -> Level:
    """The worst level with a crossed raise limit."""
    limits = ((bound, bound.rises if bound.holds else bound.value) for bound in bounds)
    risen = [
        bound.level
        for bound, limit in limits
        if limit is not None and bound.now is not None and crossed(bound.now, bound.side, limit)
    ]
    return max(risen, default=Level.OK)


def assert_implied(checklist: Checklist, steps: Sequence[Mapping[str, float]]) -> int:
    """Feeds steps with silences between them; returns the number of active flags."""
    implied: dict[str, _Implied] = {}
    states = {name: entry.state for name, entry in checklist._entries.items()}
    now, flags = 0.0, 0
    for number, data in enumerate(steps, start=1):
        for act in range(3):
            before = {name: state._read for name, state in states.items()}
            if act < 2:
                now += 10 if number % 9 else 700
                checklist.tick(now, gpu=(99.0, 100.0), host=(50.0, 100.0))
            else:
                checklist.step(number, data, t=now)
            for check in checklist.checks():
                _assert_ordered(check)
                state = states[check.rule]
                if state._read == before[check.rule] or (reading := state.reading) is None:
                    continue
                _assert_paired(reading)
                assert check.bounds or not _reachable(reading)
                level = implied.setdefault(check.rule, _Implied(check)).follow(check, reading.worse, reading.harm)
                assert (number, check.rule, level) == (number, check.rule, check.level), check.bounds
                flags += check.on
                for bound in check.bounds:
                    _assert_true(bound, check, data if act == 2 else None)
    return flags


def _assert_paired(reading: Reading) -> None:
    """Asserts that each raise limit has a release limit of the same level."""
    raising, releasing = (
        [[(level, side) for level, side, _ in rungs] for _, rungs, _ in clauses]
        for clauses in (reading.raising, reading.releasing)
    )
    assert raising == releasing


def _reachable(reading: Reading) -> bool:
    """Whether any limit can be reached."""
    return any(
        within(rung, *measure.span) and math.isfinite(rung[2])
        for _, rungs, measure in reading.raising
        for rung in rungs
    )


def _assert_true(bound: Bound, check: Check, data: Mapping[str, float] | None) -> None:
    """Asserts that a limit is marked as crossed if the displayed metric is beyond it."""
    assert bound.holds == (bound.level <= check.level)
    assert bound.crossed == (bound.now is not None and bound.on(bound.now))
    known = not bound.metric and bound.series >= 0 and bound.now is not None
    if known and data and math.isfinite(value := data.get(check.keys[bound.series], math.nan)):
        assert bound.crossed == bound.on(value)


def _assert_ordered(check: Check) -> None:
    """Asserts that for one metric and side, milder limits come first and are crossed first, except one that raised at
    once.
    """
    for _, limits in limits_by_metric(check):
        for side in "<>":
            bounds = [bound for bound in limits if bound.side[0] == side]
            levels = [(bound.level, bound.fixed) for bound in bounds]
            assert levels == sorted(set(levels))
            usual = [each for each in bounds if not (each.fixed and each.level == check.level and each.crossed)]
            assert [each.level for each in usual] == sorted({each.level for each in usual})
            values = [bound.value for bound in usual]
            assert values == sorted(values, reverse=side == "<")
