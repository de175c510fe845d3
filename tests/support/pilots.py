"""What tests of screens share."""

from collections.abc import Callable
from typing import Any

from textual.pilot import Pilot


async def until(pilot: Pilot[Any], found: Callable[[], Any], looks: int = 6000) -> None:
    """Waits until something is true of the screen, looking twenty times a second."""
    for _ in range(looks):
        if found():
            return
        await pilot.pause(0.05)
    raise AssertionError("it never came")
