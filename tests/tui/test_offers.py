"""Keys that cannot work now: the footer leaves them out, the help and a press give the reason."""

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pilots import drawn, message, until
from textual.app import App
from textual.widgets import Static

from launcher.record import queued
from launcher.record.queued import Queued
from tui.kit.dialogs.ask import AskScreen
from tui.kit.page import Offers
from tui.kit.widgets.key_bar import KeyBar
from tui.kit.widgets.lists import Items
from tui.pages.compare.screen import CompareScreen
from tui.pages.dashboard.screen import DashboardScreen
from tui.pages.help.screen import LEGENDS, HelpScreen, HelpText
from tui.pages.log.screen import LogScreen
from tui.pages.queue.screen import QueueScreen
from tui.pages.runs.screen import RunsScreen
from tui.pages.trials.screen import TrialsScreen

HOME = (80, 24)


def help_of(app: App[Any]) -> str:
    rows = app.screen.query_one(HelpText).draw(72, 1000)
    return "\n".join("".join(text for text, _ in row) for row in rows)


@pytest.fixture
def stopped(make: SimpleNamespace) -> Path:
    run: Path = make.run(attempts=[make.recorded(62)], state=make.ended("stopped"), preset={})
    return run


async def open_run(pilot: Any) -> None:
    await until(pilot, lambda: isinstance(pilot.app.screen, DashboardScreen) and pilot.app.screen.reader)
    await pilot.pause()


async def test_a_run_without_a_checkpoint_can_start_again_but_not_merge(make: SimpleNamespace, stopped: Path) -> None:
    app = make.app(stopped)
    async with app.run_test(size=(160, 48)) as pilot:
        await open_run(pilot)
        await pilot.press("R")
        await until(pilot, lambda: isinstance(app.screen, AskScreen))
        assert "No checkpoint: " in str(app.screen.query_one("#wrong", Static).render())
        await pilot.press("escape", "x")
        await until(pilot, lambda: message(app) == "The run has ended")
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        assert "Turn a checkpoint into a Hugging Face model\n" in help_of(app)
        assert " no complete checkpoint (trainer.save_every)\n" in help_of(app).partition("Not now")[2]


async def test_the_log_says_what_n_needs(make: SimpleNamespace, stopped: Path) -> None:
    app = make.app(stopped)
    async with app.run_test(size=HOME) as pilot:
        await open_run(pilot)
        await pilot.press("l")
        await until(pilot, lambda: isinstance(app.screen, LogScreen))
        assert "next" not in app.screen.query_one(KeyBar).labels
        for key in "nN":
            await pilot.press(key)
            await until(pilot, lambda: message(app) == "Search first (/)")


def first(app: App[Any], count: int = 1) -> list[str]:
    return app.screen.query_one(KeyBar).labels[:count]


async def test_the_footer_of_a_failed_run_begins_with_its_cause(make: SimpleNamespace) -> None:
    app = make.app(make.run(attempts=[make.recorded(20)], state=make.ended("failed", error="RuntimeError: x")))
    async with app.run_test(size=HOME) as pilot:
        await open_run(pilot)
        await until(pilot, lambda: first(app) == ["diagnosis"])
        await pilot.press("l")
        await until(pilot, lambda: isinstance(app.screen, LogScreen) and first(app) == ["cause"])


@pytest.mark.parametrize("page", ["", "c"])
async def test_the_footer_begins_with_the_keys_of_the_cursor(make: SimpleNamespace, stopped: Path, page: str) -> None:
    make.run(hex_id="b1", attempts=[make.recorded(62)], state=make.ended("stopped"), preset={})
    app = make.app(stopped)
    async with app.run_test(size=HOME) as pilot:
        await open_run(pilot)
        if page:
            await pilot.press(page)
            await until(pilot, lambda: isinstance(app.screen, CompareScreen) and len(app.screen.runs) == 2)
        before = first(app, 20)
        assert "close cursor" not in before
        await pilot.press("left")
        await until(pilot, lambda: {"move", "close cursor"} <= {*first(app, 3)})
        await pilot.press("escape")
        await until(pilot, lambda: first(app, 20) == before)


async def test_the_footer_of_the_queue_says_what_space_does_now(make: SimpleNamespace) -> None:
    for id, state in (("0a-run", {}), ("0b-paused", {"paused": True}), ("0c-skipped", {"skipped": "no model"})):
        Queued(id, "x", {}, os.uname().nodename, needs=1, place=ord(id[1]), added=make.start, **state).save()
    queued.pause(on=True)
    app = make.app()
    async with app.run_test(size=HOME) as pilot:
        await until(pilot, lambda: isinstance(app.screen, RunsScreen))
        await pilot.press("Q")
        await until(pilot, lambda: first(app) == ["resume the queue"])
        await pilot.press("down")
        await until(pilot, lambda: first(app, 2) == ["resume the queue", "resume"])
        await pilot.press("down")
        await until(pilot, lambda: first(app, 2) == ["resume the queue", "try again"])
        await pilot.press("up", "up")
        await until(pilot, lambda: "pause" in first(app, 9) and first(app) == ["resume the queue"])


async def test_the_page_of_trials_names_t_only_where_it_can_start_them(make: SimpleNamespace, stopped: Path) -> None:
    app = make.app(stopped)
    async with app.run_test(size=HOME) as pilot:
        await open_run(pilot)
        await pilot.press("a", "t")
        await until(pilot, lambda: isinstance(app.screen, TrialsScreen) and "None can start now" in drawn(app, Items))
        assert "Press T" not in drawn(app, Items) and "try" not in first(app, 20)


async def test_an_empty_queue_says_what_it_is_for(make: SimpleNamespace) -> None:
    app = make.app()
    async with app.run_test(size=HOME) as pilot:
        await until(pilot, lambda: isinstance(app.screen, RunsScreen))
        await pilot.press("Q")
        await until(pilot, lambda: isinstance(app.screen, QueueScreen))
        assert app.screen.query_one(KeyBar).labels == ["back", "help", "palette"]
        await pilot.press("S")
        await until(pilot, lambda: message(app) == "The queue is empty")


@pytest.mark.parametrize(
    ("key", "sections"), [("", ["Rules", "Charts"]), ("s", ["Samples"]), ("b", ["Memory", "Charts"])]
)
async def test_the_help_explains_the_signs_of_its_page_alone(
    make: SimpleNamespace, warned: Path, key: str, sections: list[str]
) -> None:
    app = make.app(warned)
    async with app.run_test(size=HOME) as pilot:
        await open_run(pilot)
        below = app.screen
        if key:
            await pilot.press(key)
            await until(pilot, lambda: app.screen is not below)
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        titles = [line for line in help_of(app).splitlines() if line in LEGENDS]
        assert titles == sections
        assert all("  " in line[2:] for line in help_of(app).splitlines() if line.startswith("  · not judged"))


def test_a_refusal_is_no_action_that_works() -> None:
    class Page(Offers):
        def refusal(self, action: str) -> str | None:
            return "why" if action == "stop" else None

    check: Callable[[str, tuple[object, ...]], bool | None] = Page().check_action
    assert check("stop", ()) is None and check("note", ()) is True
