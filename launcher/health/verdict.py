"""The order of a run's flags, and the verdict."""

from collections.abc import Iterable, Sequence

from launcher.record.check import Check
from launcher.record.levels import Level

WARM_STEPS = 20  # number of steps before which a run without flags is warming up
_BEFORE_OTHERS = ("NUM", "ERR", "LR", "KL", "ENT", "SIG", "REW", "LEN")  # root before symptom
_TELLING = ("KL-4", "KL-1", "ENT-1", "TRUNC-1", "REW-1")  # worth reading even when all is well


def sort(checks: Iterable[Check]) -> list[Check]:
    """Sorts rows: worst first, then the earliest, then likely roots before symptoms.

    Consequences of a flag follow it, and the worst of them decides its place. Rows without a flag are sorted by the
    last flag, then by importance.
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
    """The highest active level without muted rows; otherwise WARM before step 20, then OK."""
    highest = max((check.level for check in checks if not check.muted), default=Level.OK)
    if highest > Level.OK:
        return highest
    return Level.WARM if steps < WARM_STEPS else Level.OK
