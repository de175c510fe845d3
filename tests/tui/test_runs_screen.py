"""The list of runs and presets."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import OptionList

from launcher.run.directory import RunDir
from tui.run_list import RunList
from tui.screens.confirm import ConfirmScreen
from tui.screens.dashboard import DashboardScreen
from tui.screens.runs import RunsScreen

HOME = (80, 24)


async def opened(pilot: Pilot[Any]) -> None:
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


async def until(pilot: Pilot[Any], found: Callable[[], Any]) -> None:
    for _ in range(80):
        if found():
            return
        await pilot.pause(0.05)
    raise AssertionError("it never came")


def options(app: Any) -> list[str]:
    return [str(option.prompt) for option in app.screen.query_one(OptionList).options]


def chosen(app: Any) -> str:
    return str(app.screen.query_one(OptionList).highlighted_option.id)


def three_runs(make: SimpleNamespace) -> dict[str, Path]:
    return {
        "done": make.run(hex_id="d0", attempts=[make.recorded(80)], state=make.ended("finished", step=80)),
        "live": make.run(
            hex_id="11fe", attempts=[make.recorded(62)], state=make.running(created=make.start - 50)
        ),
        "old": make.run(hex_id="01d", state=make.ended("failed", step=None, created=make.start - 90)),
    }


async def test_runs_come_newest_first_with_the_live_one_chosen(make: SimpleNamespace) -> None:
    runs = three_runs(make)
    app = make.app()
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        lines = options(app)
        assert [line.split()[1] for line in lines[1:4]] == ["finished", "running", "failed"]
        assert lines[1].split()[5:] == ["80/80", "0.812", "●", "healthy", "3m", "20s"]
        assert "–/80" in lines[3]
        assert chosen(app) == f"run {runs['live']}"
        assert any("toy-cpu" in line and "no GPU" in line for line in lines[5:])


async def test_enter_opens_the_run_and_r_comes_back_to_it(make: SimpleNamespace) -> None:
    runs = three_runs(make)
    app = make.app()
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        await pilot.press("down", "enter")
        await until(pilot, lambda: isinstance(app.screen, DashboardScreen))
        assert app.screen.directory == runs["old"]
        await pilot.press("r")
        await until(pilot, lambda: isinstance(app.screen, RunsScreen))
        await opened(pilot)
        assert chosen(app) == f"run {runs['old']}"
        await pilot.press("r")
        await until(pilot, lambda: isinstance(app.screen, DashboardScreen))


async def test_without_runs_it_offers_the_presets(make: SimpleNamespace) -> None:
    app = make.app()
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        assert "none yet" in options(app)[1]
        await pilot.press("down")
        assert chosen(app).startswith("preset ")


async def test_a_preset_starts_only_after_its_command_was_confirmed(
    make: SimpleNamespace, home: Path
) -> None:
    app = make.app()
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        await pilot.press("end", "enter")
        await until(pilot, lambda: isinstance(app.screen, ConfirmScreen) or app._notifications)
        await pilot.press("n")
        await pilot.pause()
        assert isinstance(app.screen, RunsScreen)
        assert not (home / "runs").exists()


async def test_q_closes_the_screen(make: SimpleNamespace) -> None:
    app = make.app()
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        await pilot.press("q")
        await pilot.pause()
        assert not app.is_running


async def test_watching_starts_nothing(make: SimpleNamespace, home: Path) -> None:
    app = make.app(read_only=True)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        await pilot.press("end", "enter")
        await pilot.pause()
        assert isinstance(app.screen, RunsScreen)
        assert any("starts nothing" in notice.message for notice in app._notifications)


async def test_a_change_of_a_run_shows_and_the_choice_stays(make: SimpleNamespace) -> None:
    runs = three_runs(make)
    app = make.app()
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        await pilot.press("down")
        RunDir(runs["live"]).state.write_text(json.dumps(make.ended("stopped", created=make.start - 50)))
        await until(pilot, lambda: "stopped" in options(app)[2])
        make.run(hex_id="ne3", name="newest", state=make.running(created=make.start + 500))
        await until(pilot, lambda: "newest" in options(app)[1])
        assert chosen(app) == f"run {runs['old']}"


def test_a_resumed_run_without_a_step_yet_keeps_the_reward_of_its_last_one(make: SimpleNamespace) -> None:
    make.run(attempts=[make.recorded(5), []], state=make.ended("stopped", step=5))
    found = RunList()
    found.refresh()
    assert [run.reward for run in found.runs] == [make.recorded(5)[-1].data["critic/score/mean"]]


def test_ended_runs_are_read_once(make: SimpleNamespace) -> None:
    runs = three_runs(make)
    found = RunList()
    assert found.refresh()
    before = {run.path: run for run in found.runs}
    assert not found.refresh()
    assert all(before[run.path] is run for run in found.runs if run.path != runs["live"])


@pytest.mark.parametrize("size", [(250, 80), (40, 12), (20, 5), (3, 2)])
async def test_the_list_fits_any_terminal(make: SimpleNamespace, size: tuple[int, int]) -> None:
    three_runs(make)
    app = make.app()
    async with app.run_test(size=size) as pilot:
        await opened(pilot)
        app.export_screenshot()
