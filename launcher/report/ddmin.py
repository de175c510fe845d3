"""Delta debugging (Zeller's ddmin): the fewest items with which a test still fails."""

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")
Fails = Callable[[tuple[T, ...]], bool]


def ddmin(items: Sequence[T], fails: Fails[T], kept: Callable[[tuple[T, ...]], None] = lambda _: None) -> tuple[T, ...]:
    """A minimal selection of the items, in order: without any one of them, `fails` is False.

    `fails` must be True for all `items`; it is called once per selection. `kept` gets each smaller failing selection,
    so that an interrupted search has a result.
    """
    asked: dict[tuple[int, ...], bool] = {}

    def still(places: tuple[int, ...]) -> bool:
        if places not in asked:
            asked[places] = fails(tuple(items[place] for place in places))
        if asked[places]:
            kept(tuple(items[place] for place in places))
        return asked[places]

    left, parts = tuple(range(len(items))), 2
    while len(left) > 1:
        chunks = _divided(left, min(parts, len(left)))
        rests = [tuple(place for place in left if place not in chunk) for chunk in chunks]
        if (smaller := next(filter(still, chunks), None)) is not None:
            left, parts = smaller, 2
        elif (smaller := next(filter(still, rests), None)) is not None:
            left, parts = smaller, max(parts - 1, 2)
        elif parts >= len(left):
            break
        else:
            parts = 2 * parts
    if len(left) == 1 and still(()):
        left = ()
    return tuple(items[place] for place in left)


def _divided(places: tuple[int, ...], parts: int) -> list[tuple[int, ...]]:
    size = len(places)
    return [places[size * at // parts : size * (at + 1) // parts] for at in range(parts)]
