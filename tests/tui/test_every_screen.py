"""Every screen that there is, at every size, on every kind of run."""

import json
import math
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.screen import Screen

from launcher.run.directory import RunDir
from tui.keymap import owners

SIZES = [(250, 80), (160, 48), (120, 36), (80, 24), (63, 24), (40, 12), (80, 8), (29, 24), (20, 5), (2, 2)]
Open = Callable[[Pilot[Any]], Awaitable[None]]
# How a person gets to each screen: keys from the dashboard of a run. A new screen has to be added here.
ROADS: dict[str, tuple[str, ...]] = {
    "DashboardScreen": (),
    "ChecksScreen": ("h",),
    "CheckDetailScreen": ("enter",),
    "EventsScreen": ("v",),
    "MetricsScreen": ("m",),
    "MetricScreen": ("m", "enter"),
    "SamplesScreen": ("s",),
    "SampleDiffScreen": ("s", "d"),
    "LogScreen": ("l",),
    "GpuScreen": ("g",),
    "RunsScreen": ("r",),
    "ConfirmScreen": ("x",),
    "HelpScreen": ("question_mark",),
    "CompareScreen": ("c",),
}


# No check to explain, no metric to chart, no answer to compare.
NOTHING_THERE = {
    *(("CheckDetailScreen", what) for what in ("empty", "failed")),
    *(("MetricScreen", what) for what in ("empty", "failed")),
}


async def settled(pilot: Pilot[Any]) -> None:
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


async def walk(pilot: Pilot[Any], screen: str) -> None:
    """Along the road to a screen."""
    await settled(pilot)
    for key in ROADS[screen]:
        before = pilot.app.screen
        await pilot.press(key)
        for _ in range(40):
            if pilot.app.screen is not before:
                break
            await pilot.pause(0.05)
        await pilot.pause()
    assert type(pilot.app.screen).__name__ == screen


@pytest.fixture
def fullest(make: SimpleNamespace, warned: Path) -> Path:
    """The run with everything, an older one beside it, answers and eight GPUs."""
    make.run(hex_id="0ld", name="older", attempts=[make.recorded(40)],
             state=make.ended("finished", created=make.start - 100))  # fmt: skip
    run = RunDir(warned)
    run.memory.write_text(json.dumps(make.gpus(8)) + "\n")
    run.rollouts.mkdir(parents=True)
    for step in (59, 60):
        answer = {"input": "1+1=", "output": f"{step}", "gts": "2", "score": 1.0, "step": step}
        (run.rollouts / f"{step}.jsonl").write_text(f"{json.dumps(answer)}\n" * 8)
    return warned


def test_every_screen_has_a_road() -> None:
    screens = {owner.__name__ for owner in owners() if issubclass(owner, Screen)}
    assert screens == set(ROADS)


@pytest.mark.parametrize("screen", ROADS)
async def test_no_size_breaks_a_screen(make: SimpleNamespace, fullest: Path, screen: str) -> None:
    """Quick resizes, with and without time to draw between them."""
    app = make.app(fullest)
    async with app.run_test(size=(80, 24)) as pilot:
        await walk(pilot, screen)
        for size in [*SIZES, *reversed(SIZES)]:
            await pilot.resize_terminal(*size)
            await pilot.pause()
        for size in [*SIZES, (80, 24)]:
            await pilot.resize_terminal(*size)
        await pilot.pause()
        assert type(app.screen).__name__ == screen
        assert app.export_screenshot()


@pytest.mark.parametrize("screen", ROADS)
async def test_a_screen_can_be_opened_where_there_is_hardly_room(
    make: SimpleNamespace, fullest: Path, screen: str
) -> None:
    app = make.app(fullest)
    async with app.run_test(size=(20, 5)) as pilot:
        await walk(pilot, screen)
        for key in ("down", "pagedown", "right", "end", "up", "home", "left", "tab"):
            await pilot.press(key)
        assert app.is_running


@pytest.mark.parametrize("what", ["long", "nan", "empty", "failed"])
@pytest.mark.parametrize(
    "screen", [name for name in ROADS if name not in ("CompareScreen", "ConfirmScreen", "SampleDiffScreen")]
)
async def test_any_run_can_be_looked_at(make: SimpleNamespace, screen: str, what: str) -> None:
    """10,000 steps, nothing but NaN, no step at all, a failure in the first minute."""
    why = "the model was not found " * 20
    runs: dict[str, Callable[[], Path]] = {
        "long": lambda: make.run(
            attempts=[make.made_up(10_000, critic__score__mean=lambda step: math.sin(step / 900))],
            state=make.running(step=10_000, total=10_000),
        ),
        "nan": lambda: make.run(
            attempts=[make.made_up(30, critic__score__mean=math.nan, actor__entropy=math.nan)],
            state=make.running(step=30, checks=make.checks(NUM_1=("CRITICAL", "nan"))),
        ),
        "empty": lambda: make.run(state={"created": 0, "state": "queued"}),
        "failed": lambda: make.run(
            state=make.ended("failed", step=None, error=why, checks=[]), log="Traceback\n" * 400
        ),
    }
    app = make.app(runs[what]())
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        if (screen, what) in NOTHING_THERE:
            return
        await walk(pilot, screen)
        for size in ((160, 48), (20, 5), (80, 24)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
        assert app.export_screenshot()
