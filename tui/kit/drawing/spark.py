"""A curve in one line of text."""

import statistics

from tui.kit.drawing.glyphs import SPARK
from tui.kit.drawing.plot import Points
from tui.kit.drawing.rows import Row


def spark(points: Points, last: int, columns: int) -> Row:
    """The steps 0 to `last` in `columns` cells, lowest to highest finite value; blank where there is none.

    A cell shows the value of its steps that is furthest from the ordinary, so that a spike stays. A figure
    that is logged now and then keeps its height until the next value.
    """
    cells = min(columns, last + 1)
    found = points.columns(0, last, cells)
    good = [part for part in found if part]
    if not good:
        return [(" " * columns, "text")]
    low, high = min(part.low for part in good), max(part.high for part in good)
    usual = statistics.median(part.last for part in good)
    sparse, held, end = len(points.steps) < cells, " ", points.steps[-1] * cells // (last + 1)
    drawn = []
    for column, part in enumerate(found):
        if part:
            far = part.high if part.high - usual >= usual - part.low else part.low
            held = SPARK[_level(far, low, high)]
        elif not sparse or column > end:
            held = " "
        drawn.append(held)
    return [("".join(drawn).ljust(columns), "curve")]


def _level(value: float, low: float, high: float) -> int:
    """0 to 7; halved first, as the distance of two huge values is not finite."""
    if low == high:
        return len(SPARK) // 2 - 1
    share = (value / 2 - low / 2) / (high / 2 - low / 2 or 1.0)
    return min(int(share * len(SPARK)), len(SPARK) - 1)
