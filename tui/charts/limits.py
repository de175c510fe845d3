"""Limits of health rules as lines on a chart."""

from collections.abc import Iterable, Sequence

from launcher.format import number
from launcher.record.levels import Bound
from tui.drawing.plot import Limit
from tui.words.run import LEVELS


def strictest(bounds: Iterable[Bound]) -> list[Bound]:
    """Of the bounds of one level to one side, the one that is crossed first; mildest level first."""
    found: dict[tuple[int, str], Bound] = {}
    for bound in bounds:
        side = bound.side[0]
        known = found.get((bound.level, side))
        if known is None or (bound.value < known.value if side == ">" else bound.value > known.value):
            found[bound.level, side] = bound
    return sorted(found.values(), key=lambda bound: (bound.level, bound.side))


def bound_words(bound: Bound) -> str:
    """`WARN > 0.151`."""
    return f"{_side(bound)} {number(bound.value)}"


def _side(bound: Bound) -> str:
    """`WARN >`: a line that a curve is above of may be one that it must not fall below."""
    side = {">=": "≥", "<=": "≤"}.get(bound.side, bound.side)
    return f"{bound.level} {side}"


def lines(bounds: Sequence[Bound]) -> list[Limit]:
    """The limits as lines where the curve comes near them, the worst first."""
    return [Limit(bound.value, LEVELS[str(bound.level)][2], _side(bound)) for bound in reversed(strictest(bounds))]
