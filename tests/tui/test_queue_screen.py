"""The queue on the screen: its page, and its runs in the list."""

import os
import re
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from commands import call
from pilots import drawn, message, until
from textual.app import App
from textual.pilot import Pilot

from launcher.preset.files import load
from launcher.record import queued
from launcher.record.info import Edit, Origin
from launcher.record.layout import RunDir
from launcher.record.process import ProcessId
from launcher.record.queued import Checked, Queued
from tui.kit.widgets.lines import Lines
from tui.kit.widgets.lists import LineTable, RunTable
from tui.pages.launch.screen import LaunchScreen
from tui.pages.queue.screen import STATES, QueueScreen
from tui.pages.runs.screen import RunsScreen

HOME = (80, 24)


@pytest.fixture(autouse=True)
def asleep(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is started."""
    for module in ("launcher.runs.act.queue_runner", "tui.pages.queue.screen", "tui.pages.runs.screen"):
        monkeypatch.setattr(f"{module}.wake_queue", lambda **_: None)
    monkeypatch.setattr("tui.pages.queue.screen.now", lambda: 1_795_256_087.0)
    monkeypatch.setattr("launcher.runs.watch.turns._sampled", lambda _: dict.fromkeys("0123"))


def fill(make: SimpleNamespace) -> list[str]:
    """Five runs that wait, each for something else."""
    start = make.start
    entry = partial(Queued, preset={}, host=os.uname().nodename, needs=2, added=start)
    refused = (
        "grpo would fail: the model Qwen/Qwen3-4B was not found; download it first, or set model.path to a folder "
        "with it; use --force to start it anyway"
    )
    for waiting in (
        entry("0a11-ppo", "ppo", starter=ProcessId.of(os.getpid()), gpus=("0", "1"), place=1.0),
        entry("0b22-ppo", "ppo", gpus=("1", "2"), settings=("actor.lr=1e-6",), place=2.0),
        entry("0c33-grpo-of-a-rather-long-name", "grpo-of-a-rather-long-name", after="0b22-ppo", place=3.0),
        entry("0d44-grpo", "grpo", skipped=refused, place=4.0),
        entry("0e55-toy-cpu", "toy-cpu", paused=True, needs=0, place=5.0),
    ):
        waiting.save()
    warning = {"level": "warning", "message": "TMUX delays the Escape key by 500 ms"}
    for id, check in {
        "0b22-ppo": Checked(1, start, findings=(warning,)),
        "0c33-grpo-of-a-rather-long-name": Checked(1, checker=ProcessId.of(os.getpid())),
        "0d44-grpo": Checked(1, start, refused=refused),
    }.items():
        check.save(id)
    return [each.id for each in queued.entries()]


def lines(app: App[Any], selector: str) -> str:
    return "\n".join("".join(text for text, _ in row) for row in app.screen.query_one(selector, Lines).lines)


async def opened(pilot: Pilot[Any]) -> None:
    await pilot.press("Q")
    await until(pilot, lambda: isinstance(pilot.app.screen, QueueScreen))
    await until(pilot, lambda: bool(pilot.app.screen.query_one(LineTable).keys))
    await pilot.pause()


def test_a_waiting_run_has_the_same_word_in_the_list_and_in_the_queue(make: SimpleNamespace) -> None:
    fill(make)
    any_ = rf"\b(?:{'|'.join(STATES)})\b"
    words = [list(dict.fromkeys(re.findall(any_, call([name])[0].decode()))) for name in ("list", "queue")]
    assert words[0] == words[1] == ["starting", "queued", "checking", "refused", "paused"]


async def test_the_queue_is_reached_from_the_list_and_changed_there(make: SimpleNamespace) -> None:
    ids = fill(make)
    make.run(hex_id="d0", attempts=[make.recorded(80)], state=make.ended("finished", step=80))
    app = make.app()
    async with app.run_test(size=HOME) as pilot:
        await pilot.app.workers.wait_for_complete()
        table = app.screen.query_one(RunTable)
        assert [key.removeprefix("queued ") for key in table.keys[1:6]] == ids
        table.move_to(table.keys[2])
        await pilot.pause()
        assert (
            "queued" in drawn(app, RunTable)
            and "paused" in drawn(app, RunTable)
            and "Q shows the queue" in lines(app, "#about")
        )
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, QueueScreen))
        await until(pilot, lambda: bool(app.screen.query_one(LineTable).keys))
        await pilot.press("down")
        await pilot.pause()
        assert "0b22-ppo: GPU 1 is reserved for 0a11-ppo" in lines(app, "#about")
        await pilot.press("shift+down")
        await until(pilot, lambda: [each.id for each in queued.entries()][1:3] == [ids[2], ids[1]])
        await pilot.press("space")
        await until(pilot, lambda: queued.find("0b22").paused)
        await until(pilot, lambda: app.screen.query_one(LineTable).cursor == "0b22-ppo")
        await pilot.press("S")
        await until(pilot, lambda: queued.find("0b22").now and not queued.find("0b22").paused)
        await pilot.press("D")
        await until(pilot, lambda: len(app.screen_stack) == 4)
        await pilot.press("y")
        await until(pilot, lambda: "0b22-ppo" not in [each.id for each in queued.entries()])
        await pilot.press("asterisk")
        await until(pilot, queued.paused)
        await until(pilot, lambda: "paused" in lines(app, "#heading"))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, RunsScreen))


async def test_a_page_that_only_watches_changes_nothing(make: SimpleNamespace) -> None:
    ids = fill(make)
    app = make.app(read_only=True)
    async with app.run_test(size=HOME) as pilot:
        await pilot.app.workers.wait_for_complete()
        await opened(pilot)
        for key in ("S", "space", "shift+down", "D", "asterisk"):
            await pilot.press(key)
            await pilot.pause()
            assert message(app).startswith("Read-only")
        assert [each.id for each in queued.entries()] == ids and not queued.paused()


async def test_a_launch_is_queued_instead_of_started(make: SimpleNamespace) -> None:
    app = make.app()
    async with app.run_test(size=HOME) as pilot:
        await pilot.app.workers.wait_for_complete()
        table = app.screen.query_one(RunTable)
        await until(pilot, lambda: "preset toy-cpu" in table.keys)
        table.move_to("preset toy-cpu")
        await pilot.press("enter")
        await until(pilot, lambda: type(app.screen).__name__ == "LaunchScreen" and app.screen.plan.subject is not None)
        await pilot.press("Q")
        await until(pilot, lambda: isinstance(app.screen, RunsScreen))
        (entry,) = queued.entries()
        assert entry.name == "toy-cpu" and entry.needs == 0 and message(app).startswith(f"Queued {entry.id}")


async def test_a_changed_run_is_queued_with_its_origin(make: SimpleNamespace) -> None:
    earlier = make.run(state=make.ended("finished"), preset=load("toy-cpu").snapshot())
    screen = LaunchScreen(load("toy-cpu", ["actor.lr=1e-4"]), after=RunDir(earlier))
    app = make.app()
    async with app.run_test(size=HOME) as pilot:
        await pilot.app.workers.wait_for_complete()
        app.push_screen(screen)
        await until(pilot, lambda: screen.plan.subject is not None)
        await pilot.press("Q")
        await until(pilot, lambda: queued.entries())
        (entry,) = queued.entries()
        assert entry.origin == Origin(earlier.name, (Edit("actor.lr", 3e-4, 1e-4),))


@pytest.mark.parametrize("size", [HOME, (40, 12), (160, 48)])
def test_looks(make: SimpleNamespace, snap_compare: Callable[..., bool], size: tuple[int, int]) -> None:
    fill(make)

    async def at_the_skipped_one(pilot: Pilot[Any]) -> None:
        await opened(pilot)
        await pilot.press("down", "down", "down")
        await pilot.pause()

    assert snap_compare(make.app(), terminal_size=size, run_before=at_the_skipped_one)
