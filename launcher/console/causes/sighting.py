"""A line of a log that may be the cause of a run's end, and which of several is nearest to it."""

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass

from launcher.console.causes import CATALOGUE, Cause
from launcher.console.causes.frames import Owner

_ORDER = {cause.id: index for index, cause in enumerate(CATALOGUE)}
regex = functools.cache(re.compile)
"""The patterns of the catalogue, each compiled once."""


@dataclass(frozen=True)
class Quote:
    """A line of the log (numbered from 1), to be shown as evidence."""

    line: int
    text: str


@dataclass
class Sighting:
    """A line that may be a cause, with what surrounds it."""

    quote: Quote
    message: str
    source: str
    around: str
    method: Quote | None  # the remote call it came out of
    frame: Quote | None  # where it was raised: the last frame of the highest owner
    owner: Owner  # of the frame
    causes: tuple[Cause, ...]
    raised: bool
    full_key: Quote | None = None

    def shows(self, cause: Cause) -> bool:
        """Whether it stands where this cause is looked for."""
        return not cause.where or regex(cause.where).search(f"{self.around}\n{self.message}") is not None


Found = tuple[Cause, Sighting]


def best(found: Iterable[Found]) -> Found | None:
    """The most telling entry of the catalogue that was seen, and the first place of it."""
    return min(found, key=lambda pair: (pair[0].level, pair[1].quote.line, _ORDER[pair[0].id]), default=None)
