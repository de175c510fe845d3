"""Standard errors of means of autocorrelated steps and of seeds."""

import math
import statistics
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate, pairwise
from typing import NamedTuple

LEVEL = 0.95  # level of an interval
_POWER = 0.8  # probability that the suggested number of seeds shows a difference
_BLOCKS = 4  # minimum number of consecutive blocks of steps
FEWEST = 12  # minimum number of steps
_INDEPENDENT = 10  # minimum number of effectively independent steps for an exact error
_LOOSE = 8  # factor on the error below that
_POINTS = 1000  # maximum number of values; more steps are averaged in blocks
_SCALE = 20  # minimum number of blocks for an autocorrelation
_GROWTH = 1.4  # factor from one block length to the next
_MOST = 50  # maximum number of seeds that is suggested


class Error(NamedTuple):
    """The standard error of a mean and its degrees of freedom.

    `loose`: multiplied by `_LOOSE`, as the steps are too autocorrelated for an exact error.
    """

    size: float
    freedom: float
    loose: bool = False

    def reach(self, level: float = LEVEL) -> float:
        """Half-width of the interval around the mean, at a level of 0 to 1."""
        return self.size * quantile((1 + level) / 2, self.freedom) if self.size else 0.0


def of_steps(values: Sequence[float], level: float = LEVEL) -> Error | None:
    """The error of a mean over consecutive steps, for an interval at this level; None for fewer than twelve.

    The longer blocks of steps are, the less their means depend on each other. The result is the error of the block
    means with the widest interval over all block lengths with at least four blocks (Flyvbjerg and Petersen, J. Chem.
    Phys. 91, 1989, with the t quantile of Ibragimov and Müller, JBES 28, 2010). The usual block bootstrap is too narrow
    for so few steps; see docs/evidence/compare.md.
    """
    if len(values) < FEWEST:
        return None
    values = _block_means(values, -(-len(values) // _POINTS))
    errors = [_of_independent(_block_means(values, length)) for length in _lengths(len(values))]
    widest = max(errors, key=lambda error: error.reach(level))
    lasting = max(length * _time(_block_means(values, length)) for length in _scales(len(values)))
    if len(values) >= _INDEPENDENT * lasting:
        return widest
    return Error(_LOOSE * widest.size, widest.freedom, loose=True)


def of_blocks(values: Sequence[float]) -> Error:
    """The error of the mean of at least four values, from the means of four consecutive blocks.

    For noise much shorter than a block, such as seconds per step (Ibragimov and Müller, as above).
    """
    return _of_independent(_block_means(values, len(values) // _BLOCKS))


def of_seeds(first: Sequence[float], second: Sequence[float]) -> Error | None:
    """The error of the difference of two group means, with one value per run; None for one run in each.

    Welch's error; with fewer than three runs in a group Student's, which assumes equal variances.
    """
    counts = len(first), len(second)
    if max(counts) < 2:
        return None
    squares = [math.fsum((value - statistics.fmean(group)) ** 2 for value in group) for group in (first, second)]
    if min(counts) < 3:
        freedom = sum(counts) - 2
        return Error(math.sqrt(sum(squares) / freedom * (1 / counts[0] + 1 / counts[1])), freedom)
    parts = [square / (count - 1) / count for square, count in zip(squares, counts, strict=True)]
    if not sum(parts):
        return Error(0.0, sum(counts) - 2)
    weights = sum(part**2 / (count - 1) for part, count in zip(parts, counts, strict=True))
    return Error(math.sqrt(sum(parts)), sum(parts) ** 2 / weights)


def seeds_needed(difference: float, spread: float, level: float = LEVEL) -> int | None:
    """Runs per group that detect this difference in 4 of 5 cases; None above 50. `spread`: deviation in a group."""
    for count in range(2, _MOST + 1):
        freedom = 2 * count - 2
        reach = quantile((1 + level) / 2, freedom) + quantile(_POWER, freedom)
        if abs(difference) >= reach * spread * math.sqrt(2 / count):
            return count
    return None


@cache
def quantile(share: float, freedom: float) -> float:
    """The quantile of Student's t for a share above 0.5; `freedom` of at least 1, rounded to a tenth.

    With t = tan(x) √freedom, its density is that of cos(x)^(freedom - 1).
    """
    freedom, parts = max(round(freedom, 1), 1.0), 2000
    width = math.pi / 2 / parts
    areas = list(accumulate(math.cos((part + 0.5) * width) ** (freedom - 1) for part in range(parts)))
    target = (2 * share - 1) * areas[-1]
    after = next(part for part, area in enumerate(areas) if area >= target)
    before = areas[after - 1] if after else 0.0
    return math.sqrt(freedom) * math.tan((after + (target - before) / (areas[after] - before)) * width)


def _of_independent(values: Sequence[float]) -> Error:
    mean, count = statistics.fmean(values), len(values)
    return Error(math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1) / count), count - 1)


def _block_means(values: Sequence[float], length: int) -> list[float]:
    """Means of consecutive blocks; surplus values are dropped at the start."""
    if length == 1:
        return list(values)
    starts = range(len(values) % length, len(values), length)
    return [math.fsum(values[begin : begin + length]) / length for begin in starts]


def _lengths(count: int) -> Iterator[int]:
    length = 1
    while count // length >= _BLOCKS:
        yield length
        length = max(length + 1, math.ceil(length * _GROWTH))


def _scales(count: int) -> Iterator[int]:
    """Block lengths for measuring autocorrelation: slow changes appear when blocks average out fast ones."""
    length = 1
    while length == 1 or count // length >= _SCALE:
        yield length
        length *= 2


def _time(values: Sequence[float]) -> float:
    """Steps per effectively independent step: (1 + r) / (1 - r), with r the lag-1 autocorrelation.

    r is corrected for the bias of short series (Kendall, Biometrika 41, 1954).
    """
    mean = statistics.fmean(values)
    off = [value - mean for value in values]
    total = math.fsum(value * value for value in off)
    if not total:
        return 1.0
    lag1 = math.fsum(a * b for a, b in pairwise(off)) / total
    r = min(max(lag1 + (1 + 3 * lag1) / len(values), 0.0), 0.99)
    return (1 + r) / (1 - r)
