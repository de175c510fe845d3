"""How charts look through a view."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from textual.pilot import Pilot

Compare = Callable[..., bool]


@pytest.mark.parametrize(
    ("size", "theme", "keys"),
    [
        ((80, 24), "dark", ["a s", "a s", "left", "left", "plus"]),
        ((80, 24), "light", ["a x", "a l"]),
        ((160, 48), "dark", ["a s", "a x", "a x", "left"]),
        ((50, 18), "dark", ["f", "left"]),
    ],
)
def test_charts_through_a_view(
    snap_compare: Compare, make: SimpleNamespace, warned: Path, size: tuple[int, int], theme: str, keys: list[str]
) -> None:
    async def show(pilot: Pilot[Any]) -> None:
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        await pilot.press(*keys)
        await pilot.pause()

    assert snap_compare(make.app(warned, theme=theme), terminal_size=size, run_before=show)


def test_one_metric_through_a_view(snap_compare: Compare, make: SimpleNamespace, warned: Path) -> None:
    async def show(pilot: Pilot[Any]) -> None:
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        await pilot.press("m", "enter", "a s", "a s", "left", "left")
        await pilot.pause()

    assert snap_compare(make.app(warned), terminal_size=(80, 24), run_before=show)
