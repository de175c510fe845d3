"""What is wrong with a run now, in one list: its failure, its hang, its flags."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from launcher.health.verdict import problem_of
from launcher.runs.watch import stalls

if TYPE_CHECKING:
    from launcher.preset.effective import EffectiveConfig
    from launcher.record.check import Check
    from launcher.record.problem import Problem
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
    """A check with the fixes that the run can use; without fixes where no flag is up."""
    from launcher.preset.settle import offers

    return problem_of(check, offers(check.fixes, config, imported=imported) if check.on else ())
