"""A run's checks in words: the verdict, the limits, and how long a limit must be crossed."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from launcher.core.format import counted, number
from launcher.metrics.frameworks import Framework
from launcher.record.check import Bound, Check
from launcher.record.levels import Level, crossed
from launcher.record.state import ENDED

if TYPE_CHECKING:
    from launcher.health.checklist import Checklist

CROSSED = ", crossed"
TOO_SHORT = "too short"
_SIDES = {">=": "≥", "<=": "≤"}
_CLEARS = {">=": "clears <", "<=": "clears >", ">": "clears ≤", "<": "clears ≥"}
_BEYOND = {"<": ("under", "above"), ">": ("over", "below"), "<>": ("beyond", "within")}  # by the sides of the limits


def sentence(checklist: "Checklist", outcome: str | None = None) -> str:
    """The verdict in words: `OK — 19 of 31 rules judged, 8 not judged, 4 warming up`.

    `outcome`: the state of the run [default: the checklist's].
    """
    checks, outcome = checklist.checks(), outcome or checklist.outcome
    word = shown(outcome, str(checklist.verdict))
    unknown = sum(check.level == Level.N_A for check in checks)
    warming = sum(check.level == Level.WARM for check in checks)
    muted = sum(check.muted for check in checks)
    parts = [f"{len(checks) - unknown - warming} of {len(checks)} rules judged"]
    parts += [f"{unknown} not judged"] if unknown else []
    parts += [f"{warming} warming up"] if warming else []
    parts += [f"{muted} muted"] if muted else []
    ended = f"{outcome}: " if outcome in ("failed", "finished") else ""
    return f"{ended}{word} — {', '.join(parts)}"


def coverage(framework: Framework, checks: Sequence[Check]) -> str:
    """`slime: 20 of 49 rules apply; not judged: critic, memory`: lists families without a rule for its framework."""
    judging = sum(check.level != Level.N_A for check in checks)
    families = {
        check.family: all(other.level == Level.N_A for other in checks if other.family == check.family)
        for check in checks
    }
    missing = ", ".join(family for family, absent in families.items() if absent)
    missing = "reinforcement learning" if framework.kind else missing
    return f"{framework.words}: {judging} of {len(checks)} rules apply" + (missing and f"; not judged: {missing}")


def shown(state: str, verdict: str | None) -> str:
    """A run's verdict for display; `too short` if it ended while rules were warming up. JSON has the level."""
    if verdict == str(Level.WARM):
        return TOO_SHORT if state in ENDED else Level.WARM.words
    return verdict or "–"


def phase_word(phase: str) -> str:
    """A phase next to the run's state; after the last step it is the end of veRL and Ray."""
    return "shutdown" if phase == "final" else phase.removesuffix("-first")


def state_word(state: str, outcome: str | None) -> str:
    """`running`; for an imported log with its outcome: `imported (failed)`."""
    return f"{state} ({'unfinished' if outcome == 'running' else outcome})" if outcome else state


def bound_words(bound: Bound) -> str:
    """`WARN ≥ 0.100`; for an active level both limits if they differ: `WARN ≥ 0.100, clears < 0.080`."""
    if bound.rises in (None, bound.value):
        return line_words(bound)
    return f"{_rises(bound, bound.rises)}, {_clears(bound)}"


def line_words(bound: Bound) -> str:
    """One limit, as a chart label: `WARN ≥ 0.100`; `WARN clears < 0.080` if only that applies now."""
    if bound.holds and bound.rises is None:
        return f"{bound.level} {_clears(bound)}"
    return _rises(bound, line_value(bound))


def line_value(bound: Bound) -> float:
    """The chart value of a limit: where its level rises, if that applies now."""
    return bound.value if bound.rises is None else bound.rises


def _rises(bound: Bound, value: float | None) -> str:
    return f"{bound.level} {_SIDES.get(bound.side, bound.side)} {number(value)}"


def _clears(bound: Bound) -> str:
    return f"{_CLEARS[bound.side]} {number(bound.value)}"


def uncovered(bounds: Sequence[Bound]) -> list[Bound]:
    """The bounds of one metric without those that a higher level covers; a flag keeps the limit at which it clears."""
    found = list[Bound]()
    for bound in bounds:
        above = [other for other in bounds if other.level > bound.level and other.side[0] == bound.side[0]]
        if all(crossed(line_value(other), bound.side[0], line_value(bound)) for other in above):
            found.append(bound)
        elif bound.holds:
            found.append(replace(bound, rises=None))
    return found


def limits_by_metric(check: Check) -> list[tuple[str, Sequence[Bound]]]:
    """Each compared quantity with its value and limits: `lowest of 5 steps 0.977`, [...].

    The metric is named only if the check has several. Limits that do not apply at this step are omitted.
    """
    several = any(bound.series > 0 for bound in check.bounds)
    found: list[tuple[str, Sequence[Bound]]] = []
    for (metric, series, now), bounds in groupby(check.bounds, lambda each: (each.metric, each.series, each.now)):
        words = metric or (check.keys[series] if several and 0 <= series < len(check.keys) else "")
        if now is not None or not metric:
            found.append((f"{words} {number(now)}" if words and now is not None else words, uncovered(list(bounds))))
    return found


def debounce_words(check: Check) -> str:
    """How long a limit must be crossed before the level changes; empty for rules without a delay."""
    if len(check.debounce) != 3:
        return ""
    count, window, release = check.debounce
    beyond, within = _BEYOND["".join(sorted({bound.side[0] for bound in check.bounds})) or ">"]
    words = [f"rises after {count} of {counted(window, 'step')} {beyond} a limit"] if window > 1 else []
    if release > 1:
        words.append(f"clears after {release if words else counted(release, 'step')} {within}")
    return "; ".join(words)
