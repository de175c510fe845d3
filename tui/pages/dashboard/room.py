"""Divides the rows of the dashboard: charts first, then checks, log and blank rows."""

from collections.abc import Sequence
from typing import NamedTuple

CHART = 6  # rows in which a chart has a title, four rows of curve and an axis
_AIR = 6  # blank rows between the parts of a high screen
TIMING = 3
DIAGNOSED = {"-tall": 5, "-home": 2, "-short": 1, "-low": 1}  # maximum rows of checks next to a diagnosis


class Share(NamedTuple):
    """Rows of the checks with the memory chart next to them, maximum rows of the log, room for time and blanks."""

    checks: int
    log: int
    timing: bool = False
    air: bool = False


SHARES = {  # by height class; the roomiest first
    "-tall": (
        Share(9, 6, timing=True, air=True),
        Share(9, 3, timing=True, air=True),
        Share(9, 3, timing=True),
        Share(7, 2, timing=True),
        Share(5, 2, timing=True),
        Share(5, 2),
        Share(4, 1),
    ),
    "-home": (Share(4, 2), Share(3, 2), Share(3, 1), Share(2, 1)),
    "-short": (Share(2, 1), Share(1, 1)),
    "-low": (Share(2, 0), Share(1, 0)),
}


def share(shares: Sequence[Share], free: int, grid: int, *, lines: int, timed: bool) -> Share:
    """The first share with enough height for each of `grid` rows of charts, otherwise the last share.

    `free`: rows left by parts of fixed height. The log gets at most `lines` rows.
    """
    fitted = [each._replace(log=min(each.log, max(lines, 1)), timing=each.timing and timed) for each in shares]
    for each in fitted:
        if free - each.checks - each.log - TIMING * each.timing - _AIR * each.air >= CHART * grid:
            return each
    return fitted[-1]
