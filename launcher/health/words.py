"""The limits of a check in words, for the screen and for commands."""

from collections.abc import Sequence
from itertools import groupby

from launcher.core.format import number
from launcher.record.check import Bound, Check

_SIDES = {">=": "≥", "<=": "≤"}
CROSSED = ", crossed"


def bound_words(bound: Bound) -> str:
    """`WARN > 0.151`; of a level that is on `WARN while > 0.151`."""
    holds = " while" if bound.holds else ""
    return f"{bound.level}{holds} {_SIDES.get(bound.side, bound.side)} {number(bound.value)}"


def limits_by_figure(check: Check) -> list[tuple[str, Sequence[Bound]]]:
    """What is compared, with its value, and its limits: `lowest of 5 steps = 0.977`, [...].

    The metric itself is named only where the check is about several.
    """
    several = any(bound.series > 0 for bound in check.bounds)
    found: list[tuple[str, Sequence[Bound]]] = []
    for (figure, series, now), bounds in groupby(check.bounds, lambda each: (each.figure, each.series, each.now)):
        words = figure or (check.keys[series] if several and 0 <= series < len(check.keys) else "")
        value = "(does not apply now)" if now is None else f"= {number(now)}"
        found.append((f"{words} {value}" if figure else words, list(bounds)))
    return found


def debounce_words(check: Check) -> str:
    """How long a limit must be crossed until the level follows; empty for rules that follow at once."""
    if len(check.debounce) != 3:
        return ""
    count, window, release = check.debounce
    raised = f"raised if {count} of {window} steps are bad, " if window > 1 else ""
    return f"{raised}cleared after {release} good steps" if release > 1 else ""
