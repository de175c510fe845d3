"""The distribution of a step's scores: `scores` in a line of steps.jsonl."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Any

PARTS = 10


def part_of(score: float, low: float, high: float, parts: int) -> int:
    """The index of the part that contains a score, among equal parts of the range from `low` to `high`."""
    half = high / 2 - low / 2 or 1.0  # the distance of two huge scores is not finite
    return min(int((score / 2 - low / 2) / half * parts), parts - 1)


@dataclass(frozen=True, slots=True)
class ScoreCounts:
    """How many responses of a step have which score.

    `low`, `high`: the lowest and highest score. `zeros`, `ones`: responses with a score of exactly 0 and exactly 1.
    `parts`: the others, in PARTS equal parts of the range from `low` to `high`.
    """

    low: float
    high: float
    zeros: int
    ones: int
    parts: tuple[int, ...]

    @classmethod
    def of(cls, scores: Iterable[float]) -> "ScoreCounts | None":
        """Counts the finite scores; None without any."""
        finite = [score for score in scores if isfinite(score)]
        if not finite:
            return None
        low, high = min(finite), max(finite)
        parts = Counter(part_of(score, low, high, PARTS) for score in finite if score not in (0, 1))
        return cls(low, high, finite.count(0), finite.count(1), tuple(parts[part] for part in range(PARTS)))

    @classmethod
    def read(cls, raw: Any) -> "ScoreCounts | None":
        """The counts in a JSON value; None if it has none, or is damaged."""
        if not isinstance(raw, dict):
            return None
        values: list[Any] = [raw.get(name) for name in cls.__slots__]
        low, high, zeros, ones, parts = values
        counts = [zeros, ones, *(parts if isinstance(parts, list) else [])]
        ends = all(type(end) is float and isfinite(end) for end in (low, high)) and low <= high
        if not ends or len(counts) != PARTS + 2 or not all(type(count) is int and count >= 0 for count in counts):
            return None
        return cls(low, high, zeros, ones, tuple(counts[2:])) if any(counts) else None

    def amounts(self) -> Iterator[tuple[float, int]]:
        """Scores with the number of responses: 0, 1, and the middle of each part that is not empty."""
        yield from ((score, count) for score, count in ((0.0, self.zeros), (1.0, self.ones)) if count)
        for part, count in enumerate(self.parts):
            if count:
                at = (part + 0.5) / PARTS
                yield self.low * (1 - at) + self.high * at, count
