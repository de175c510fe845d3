"""The headline score of validations, as points beside the reward."""

import math

from launcher.metrics.store import Series
from tui.kit.drawing.glyphs import WAITING
from tui.kit.drawing.plot import Curve

_FAR = 3.0  # times the height of the reward's curve that both together may be high


def validation_points(scores: Series, reward: Series) -> Curve | None:
    """The scores as points, when they are on the scale of the reward: else they would flatten its curve."""
    ours, theirs = (series.span(0, series.steps[-1]) for series in (scores, reward))
    if ours is None or theirs is None:
        return None
    low, high = min(ours.low, theirs.low), max(ours.high, theirs.high)
    shares = low >= 0 and high <= 1
    if not shares and high - low > _FAR * (theirs.high - theirs.low):
        return None
    return Curve(scores, "point", sign=WAITING, points_only=True)


def finite_last(series: Series) -> float | None:
    """The newest value that is finite."""
    return next((value for value in reversed(series.values) if math.isfinite(value)), None)
