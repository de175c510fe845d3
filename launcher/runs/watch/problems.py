"""What is wrong with a run now, in one list: its failure, its hang, its flags."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from launcher.health.catalogue import texts_of
from launcher.record.problem import Evidence, Problem
from launcher.runs.watch import stalls
from launcher.runs.watch.check_words import bound_words, limits_by_metric

if TYPE_CHECKING:
    from launcher.preset.effective import EffectiveConfig
    from launcher.record.check import Check
    from launcher.record.state import RunState
    from launcher.runs.watch.run_diagnosis import Explanation


def problems(
    state: RunState, config: EffectiveConfig | None, now: float | None, explanation: Explanation | None = None
) -> Iterator[Problem]:
    """The failure if it is explained, the hang of a live run, the flags that count; the worst flag first."""
    if explanation is not None:
        yield explanation.problem
    if state.standstill is not None and state.live:
        yield stalls.problem_of(state.standstill, now, config)
    for check in state.checks:
        if check.on and not check.muted:
            yield flag(check, config, imported=state.state == "imported")


def flag(check: Check, config: EffectiveConfig | None, *, imported: bool = False) -> Problem:
    """A check as a problem, with the limits that apply now, and the fixes that fit the run while it is on."""
    from launcher.preset.settle import offers

    about = texts_of(check.rule, check.family)
    since = f" (since step {check.since})" if check.since is not None else ""
    limits = (f"{metric or 'limits now'} ({'; '.join(map(bound_words, of))})" for metric, of in limits_by_metric(check))
    return Problem(
        "flag",
        check.rule,
        check.level,
        check.title,
        f"{check.message}{since}",
        about.meaning if about else "",
        tuple(map(Evidence, limits)),
        tuple(offers(check.fixes, config, imported=imported)) if check.on else (),
    )
