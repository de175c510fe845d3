"""The checks of a run for people: their order, the verdict, the verdict and the limits in words."""

from collections.abc import Iterable, Sequence
from itertools import groupby

from launcher.core.format import counted, number
from launcher.health.catalogue import families
from launcher.record.check import Bound, Check
from launcher.record.fix import Offer
from launcher.record.levels import Level
from launcher.record.problem import Evidence, Problem
from launcher.record.state import ENDED

CROSSED = ", crossed"
_SIDES = {">=": "≥", "<=": "≤"}
_CLEARS = {">=": "clears below", "<=": "clears above", ">": "clears at", "<": "clears at"}
_BEYOND = {"<": ("under", "above"), ">": ("over", "below"), "<>": ("beyond", "within")}  # by the sides of the limits
TOO_SHORT = "too short"
WARM_STEPS = 20  # before that a run without flags is still warming up
_BEFORE_OTHERS = ("NUM", "ERR", "LR", "KL", "ENT", "SIG", "REW", "LEN")  # root before symptom
_TELLING = ("KL-4", "KL-1", "ENT-1", "TRUNC-1", "REW-1")  # worth reading even when all is well


def sort(checks: Iterable[Check]) -> list[Check]:
    """Worst first; among equals the one that came on first, then likely roots before their symptoms.

    What follows from a flag is listed below it, and the worst of them decides its place.
    Where nothing is on, those come first that were on earlier, the latest ahead; then the most telling ones.
    """

    checks = list(checks)
    worst: dict[str, Level] = {}
    for check in checks:
        worst[check.cause] = max(worst.get(check.cause, check.level), check.level)

    def place(check: Check) -> tuple[bool, int, int, int, int]:
        family = check.rule.partition("-")[0]
        rank = _BEFORE_OTHERS.index(family) if family in _BEFORE_OTHERS else len(_BEFORE_OTHERS)
        if check.level > Level.OK:
            return check.muted, -max(check.level, worst.get(check.rule, check.level)), check.since or 0, 0, rank
        cleared = -check.cleared if check.cleared is not None else 1
        telling = _TELLING.index(check.rule) if check.rule in _TELLING else len(_TELLING)
        return check.muted, -check.level, cleared, telling, rank

    ordered = sorted(checks, key=place)
    return [each for root in ordered if not root.cause for each in (root, *_following(root, ordered))]


def _following(root: Check, checks: Iterable[Check]) -> Iterable[Check]:
    return (check for check in checks if check.cause == root.rule)


def verdict(checks: Sequence[Check], steps: int) -> Level:
    """The highest level that is on, muted rows aside; else WARM before the 20th step and OK from then on."""
    highest = max((check.level for check in checks if not check.muted), default=Level.OK)
    if highest > Level.OK:
        return highest
    return Level.WARM if steps < WARM_STEPS else Level.OK


def sentence(checks: Sequence[Check], steps: int, outcome: str) -> str:
    """The verdict in words, always with the number of rules that judged; `outcome` is the run's state."""
    word = shown(outcome, str(verdict(checks, steps)))
    unknown = sum(check.level == Level.N_A for check in checks)
    warming = sum(check.level == Level.WARM for check in checks)
    muted = sum(check.muted for check in checks)
    parts = [f"{len(checks) - unknown - warming} of {len(checks)} rules judged"]
    parts += [f"{unknown} not judged"] if unknown else []
    parts += [f"{warming} warming up"] if warming else []
    parts += [f"{muted} muted"] if muted else []
    ended = f"{outcome}: " if outcome in ("failed", "finished") else ""
    return f"{ended}{word} — {', '.join(parts)}"


def coverage(title: str, checks: Sequence[Check]) -> str:
    """How many rules judge the log of another framework: `slime: 20 of 48 rules judge it; no critic, no memory`.

    It names the families of which no rule judges.
    """
    judging = sum(check.level != Level.N_A for check in checks)
    families = {
        check.family: all(other.level == Level.N_A for other in checks if other.family == check.family)
        for check in checks
    }
    missing = [f"no {family}" for family, absent in families.items() if absent]
    return f"{title}: {judging} of {len(checks)} rules judge it" + (f"; {', '.join(missing)}" if missing else "")


def shown(state: str, verdict: str | None) -> str:
    """A run's verdict as people see it; one that ended while rules were warming up is too short. JSON has the level."""
    if verdict == str(Level.WARM):
        return TOO_SHORT if state in ENDED else Level.WARM.words
    return verdict or "–"


def problem_of(check: Check, offers: Sequence[Offer] = ()) -> Problem:
    """A flag in the form of all problems: its message, and as evidence the limits as they apply now."""
    family = families().get(check.family)
    since = f" (since step {check.since})" if check.since is not None else ""
    limits = (f"{metric or 'limits now'} ({'; '.join(map(bound_words, of))})" for metric, of in limits_by_metric(check))
    return Problem(
        "flag",
        check.rule,
        check.level,
        check.title,
        f"{check.message}{since}",
        family.meaning if family else "",
        tuple(map(Evidence, limits)),
        tuple(offers),
    )


def bound_words(bound: Bound) -> str:
    """`WARN ≥ 0.100`; of a level that is on, both limits where they differ: `WARN ≥ 0.100, clears below 0.080`."""
    if bound.rises in (None, bound.value):
        return line_words(bound)
    return f"{_rises(bound, bound.rises)}, {_clears(bound)}"


def line_words(bound: Bound) -> str:
    """One limit, for its line in a chart: `WARN ≥ 0.100`; where a flag clears elsewhere, `WARN clears below 0.080`."""
    if bound.holds and bound.rises != bound.value:
        return f"{bound.level} {_clears(bound)}"
    return _rises(bound, bound.value)


def _rises(bound: Bound, value: float | None) -> str:
    return f"{bound.level} {_SIDES.get(bound.side, bound.side)} {number(value)}"


def _clears(bound: Bound) -> str:
    return f"{_CLEARS[bound.side]} {number(bound.value)}"


def limits_by_metric(check: Check) -> list[tuple[str, Sequence[Bound]]]:
    """What is compared, with its value, and its limits: `lowest of 5 steps 0.977`, [...].

    The metric itself is named only where the check is about several. What does not apply at this step is left out.
    """
    several = any(bound.series > 0 for bound in check.bounds)
    found: list[tuple[str, Sequence[Bound]]] = []
    for (metric, series, now), bounds in groupby(check.bounds, lambda each: (each.metric, each.series, each.now)):
        words = metric or (check.keys[series] if several and 0 <= series < len(check.keys) else "")
        if now is not None or not metric:
            found.append((f"{words} {number(now)}" if words and now is not None else words, list(bounds)))
    return found


def debounce_words(check: Check) -> str:
    """How long a limit must be crossed until the level follows; empty for rules that follow at once."""
    if len(check.debounce) != 3:
        return ""
    count, window, release = check.debounce
    beyond, within = _BEYOND["".join(sorted({bound.side[0] for bound in check.bounds})) or ">"]
    words = [f"rises after {count} of {counted(window, 'step')} {beyond} a limit"] if window > 1 else []
    if release > 1:
        words.append(f"clears after {release if words else counted(release, 'step')} {within}")
    return "; ".join(words)
