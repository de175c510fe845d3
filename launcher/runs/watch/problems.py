"""Current problems of a run in one list: its failure, hang and flags."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from launcher.health.catalogue import texts_of
from launcher.record.levels import Level
from launcher.record.problem import Evidence, Problem
from launcher.runs.watch import stalls
from launcher.runs.watch.check_words import bound_words, limits_by_metric

if TYPE_CHECKING:
    from launcher.preset.effective import EffectiveConfig
    from launcher.record.check import Check
    from launcher.record.layout import RunDir
    from launcher.record.state import RunState
    from launcher.runs.watch.parent import Parent
    from launcher.runs.watch.run_diagnosis import Explanation


def problems(
    run: RunDir, state: RunState, now: float | None, explanation: Explanation | None = None
) -> Iterator[Problem]:
    """An explained failure, the hang of a live run, and counting flags, worst flag first."""
    from launcher.runs.watch.parent import Parent

    parent = Parent(run)
    if explanation is not None:
        yield explanation.problem
    if state.standstill is not None and state.live:
        yield stalls.problem_of(state.standstill, now, settings_of(parent))
    for check in state.shown.checks:
        if check.on and not check.muted:
            yield fixed_flag(parent, check)


def settings_of(run: Parent) -> EffectiveConfig | None:
    """The newest attempt's configuration; None for a log without one."""
    return None if run.latest.preset is None else run.config


def fixed_flag(run: Parent, check: Check) -> Problem:
    """A flag as a problem; its first fix is the first change of a trial, for all pages, commands and alerts."""
    from launcher.runs.watch.proposals import computed, first_proposal

    unit, imported = run.state.numbering.unit, run.state.state == "imported"
    found = flag(check, settings_of(run), imported=imported, values=computed(run.info), unit=unit)
    proposal = first_proposal(run, found.id) if found.level > Level.OK else None
    return found.first(proposal.offer if proposal else None)


def first_fix(run: RunDir, rule: str) -> str | None:
    """The first fix of an active flag; None without one."""
    from launcher.runs.watch.parent import Parent

    parent = Parent(run)
    offers = (fixed_flag(parent, check).offers for check in parent.state.checks if check.on and check.rule == rule)
    return next((found[0].text for found in offers if found), None)


def flag(
    check: Check,
    config: EffectiveConfig | None,
    *,
    imported: bool = False,
    values: Mapping[str, Any] | None = None,
    unit: str = "step",
) -> Problem:
    """A check as a problem, with current limits and, while active, fixes for the run; `values` as in `settle`."""
    from launcher.preset.settle import offers

    about = texts_of(check.rule, check.family)
    rules = (check.rule, *filter(None, [check.cause]))
    since = f" (since {unit} {check.since})" if check.since is not None else ""
    limits = (f"{metric or 'limits'} ({'; '.join(map(bound_words, of))})" for metric, of in limits_by_metric(check))
    seen, lead = f"{check.symptom}{since}", check.lead
    return Problem(
        "flag",
        check.rule,
        check.level,
        check.title,
        seen if lead is None else "",
        about.meaning if about else "",
        (*(() if lead is None else (Evidence(seen, name=check.rule), *lead.supports)), *map(Evidence, limits)),
        offers(check.fixes, config, imported=imported, rules=rules, values=values) if check.on else (),
        rivals=check.rivals,
    )
