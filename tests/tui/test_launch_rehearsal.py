"""The rehearsal on the launch screen."""

import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pilots import message, until
from textual.pilot import Pilot

from launcher.check.finding import REHEARSAL, Finding, found
from tui.kit.widgets.lines import Lines
from tui.pages.launch.screen import LaunchScreen

GOOD = """
extends: toy-cpu
model: {path: /models/tiny}
data: {train: /data/train.parquet, val: /data/val.parquet}
"""


async def opened(pilot: Pilot[Any], home: Path, text: str) -> LaunchScreen:
    """The launch of a preset, whose slower checks find nothing."""
    (home / "mine.yaml").write_text(text)
    screen = LaunchScreen(str(home / "mine.yaml"))
    await pilot.pause()
    pilot.app.push_screen(screen)
    await until(pilot, lambda: screen.plan.command and not screen.doing)
    return screen


def title(screen: LaunchScreen) -> str:
    return " ".join("".join(text for text, _ in row) for row in screen.query_one("#launch-title", Lines).lines)


class Rehearsed:
    """Stands for the rehearsal, which is two minutes of veRL: waits for `go`, or ends when it is cancelled."""

    def __init__(self) -> None:
        self.go, self.cancelled = threading.Event(), threading.Event()

    def __call__(self, _: object, narrate: Callable[[str], None], cancelled: Callable[[], bool]) -> Finding | None:
        narrate("rehearsal: generating responses")
        while not self.go.wait(0.02):
            if cancelled():
                self.cancelled.set()
                return None
        return found("REHEARSAL.finished", steps=2, untried="no GPU")


@pytest.fixture
def rehearsal(monkeypatch: pytest.MonkeyPatch) -> Rehearsed:
    found = Rehearsed()
    monkeypatch.setattr("tui.pages.launch.screen.examine", lambda *_: ())
    monkeypatch.setattr("launcher.runs.act.rehearse.rehearse", found)
    return found


async def test_a_rehearsal_tells_its_phase_and_what_it_found(
    make: SimpleNamespace, home: Path, rehearsal: Rehearsed
) -> None:
    async with make.app().run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, home, GOOD)
        for _ in range(2):  # the second one replaces what the first has found
            rehearsal.go.clear()
            await pilot.press("percent_sign")
            await until(pilot, lambda: "rehearsal: generating" in title(screen))
            rehearsal.go.set()
            await until(pilot, lambda: not screen.doing)
            (found,) = [found.message for found in screen.findings if found.id == REHEARSAL]
            assert found.startswith("veRL ran 2 small steps of it on the CPU")


async def test_escape_ends_the_rehearsal_and_only_then_the_screen(
    make: SimpleNamespace, home: Path, rehearsal: Rehearsed
) -> None:
    async with make.app().run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, home, GOOD)
        await pilot.press("percent_sign")
        await until(pilot, lambda: "rehearsal: generating" in title(screen))
        await pilot.press("escape")
        await until(pilot, rehearsal.cancelled.is_set)
        assert pilot.app.screen is screen and not screen.doing
        await pilot.press("escape")
        await until(pilot, lambda: pilot.app.screen is not screen)


async def test_what_fails_already_is_not_rehearsed(make: SimpleNamespace, home: Path, rehearsal: Rehearsed) -> None:
    async with make.app().run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, home, "extends: toy-cpu\nactor: {lr: high}\n")
        await pilot.press("percent_sign")
        await until(pilot, lambda: "would stop there" in message(pilot.app))
        assert not screen.rehearsing
