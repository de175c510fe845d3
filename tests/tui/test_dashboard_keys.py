"""The keys of the dashboard: they stop, leave, open pages and neighbours, and are all listed."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pilots import drawn, message, until
from textual.pilot import Pilot
from textual.widgets import Static

from launcher.record.attempt import Followed
from launcher.record.control import take
from launcher.record.layout import RunDir
from tui.kit.dialogs.choose import ConfirmScreen
from tui.kit.widgets.header_line import HeaderLine
from tui.kit.widgets.key_bar import KeyBar
from tui.pages.dashboard.screen import DashboardScreen
from tui.pages.runs.screen import RunsScreen

HOME = (80, 24)


async def opened(pilot: Pilot[Any]) -> None:
    """Waits until the run has been read and drawn."""
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


async def test_stop_asks_and_no_leaves_the_run_alone(make: SimpleNamespace, warned: Path) -> None:
    app = make.app(warned)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        for refusal in ("n", "escape", "enter"):  # enter presses the safe button
            await pilot.press("x")
            await until(pilot, lambda: isinstance(app.screen, ConfirmScreen))
            await pilot.press(refusal)
            await until(pilot, lambda: isinstance(app.screen, DashboardScreen))
        assert list(RunDir(warned).control.iterdir()) == []


async def test_stop_asks_and_yes_sends_the_request(make: SimpleNamespace, warned: Path) -> None:
    app = make.app(warned)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        await pilot.press("x")
        await until(pilot, lambda: isinstance(app.screen, ConfirmScreen))
        await pilot.press("y")
        await until(pilot, lambda: any(RunDir(warned).control.iterdir()))
        # as its supervisor does: a stop that nobody takes kills it, which is this process
        (sent,) = take(RunDir(warned))
        assert (sent.verb, sent.by) == ("stop", "screen")
        await until(pilot, lambda: message(app) == f"Stop requested: {warned.name}")


@pytest.mark.parametrize(("speed", "ends"), [(None, "no longer read; no process"), (9.0, "no longer played")])
async def test_a_log_has_no_process(make: SimpleNamespace, warned: Path, speed: float | None, ends: str) -> None:
    attempt = RunDir(warned).last_attempt()
    assert attempt is not None
    replace(attempt.read_launch(), follow=Followed("/a.log", "console", speed)).write(attempt.launch)
    app = make.app(warned)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        await pilot.press("x")
        await until(pilot, lambda: isinstance(app.screen, ConfirmScreen))
        said = " ".join(str(each.render()) for each in app.screen.query(Static))
        assert ends in said and "SIGTERM" not in said


async def test_a_stop_that_ended_the_run_itself_says_so(
    make: SimpleNamespace, warned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(run: RunDir, *, by: str, narrate: Callable[[str], None]) -> str:
        narrate("the run had a supervisor that did not respond")
        return "stopped"

    monkeypatch.setattr("launcher.runs.act.stop.stop", stop)
    app = make.app(warned)
    async with app.run_test(size=(160, 48)) as pilot:
        await opened(pilot)
        await pilot.press("x")
        await until(pilot, lambda: isinstance(app.screen, ConfirmScreen))
        await pilot.press("y")
        told = f"{warned.name} is stopped; the run had a supervisor that did not respond"
        await until(pilot, lambda: message(app) == told)


async def test_a_watched_run_cannot_be_stopped(make: SimpleNamespace, warned: Path) -> None:
    app = make.app(warned, read_only=True)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        assert "watching" in drawn(app, HeaderLine)
        await pilot.press("x")
        await pilot.pause()
        assert isinstance(app.screen, DashboardScreen)
        assert "Read-only" in message(app)
        assert list(RunDir(warned).control.iterdir()) == []


async def test_neighbours_are_a_key_away(make: SimpleNamespace, warned: Path) -> None:
    older = make.run(hex_id="0ld", name="older", state=make.ended("finished", created=make.start - 100))
    app = make.app(warned)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        await pilot.press("left_square_bracket")
        await until(pilot, lambda: app.screen.is_attached and getattr(app.screen, "directory", None) == older)
        await opened(pilot)
        await pilot.press("left_square_bracket")  # there is no older one
        assert app.screen.directory == older
        await pilot.press("right_square_bracket")
        await until(pilot, lambda: getattr(app.screen, "directory", None) == warned)


async def test_the_log_follows_and_the_checks_open(make: SimpleNamespace, warned: Path) -> None:
    app = make.app(warned)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        await pilot.press("l")
        with RunDir(warned).attempt(1).console.open("a") as file:
            file.write("one more line\n")
        await until(pilot, lambda: "one\xa0more\xa0line" in app.export_screenshot().replace("&#160;", "\xa0"))
        await pilot.press("l", "h")
        await pilot.pause()
        assert "Unrewarded drift" in app.export_screenshot().replace("&#160;", " ")


async def test_help_and_palette_list_every_key_of_the_footer(make: SimpleNamespace, warned: Path) -> None:
    app = make.app(warned)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        footer = {b.binding.description for b in app.screen.active_bindings.values() if b.binding.show and b.enabled}
        assert footer == {"events", "rules", "metrics", "log", "stop", "back", "quit", "actions", "help", "palette"}
        titles = {command.title.lower().partition(" (")[0] for command in app.get_system_commands(app.screen)}
        assert footer <= titles
        await pilot.press("question_mark")
        await pilot.pause()
        assert "Stop the run; asks first" in app.export_screenshot().replace("&#160;", " ")


async def test_the_palette_lists_what_several_keys_do_once(make: SimpleNamespace, warned: Path) -> None:
    app = make.app(warned)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        await pilot.press("h")  # h, q and escape go back from there
        await pilot.pause()
        titles = [command.title for command in app.get_system_commands(app.screen)]
        assert titles.count("Back (esc)") == 1 and sorted(titles) == sorted(set(titles))


async def test_escape_leads_to_the_list_and_q_ends_the_program_where_it_began(make: SimpleNamespace) -> None:
    app = make.app(make.run(attempts=[make.recorded(9)], state=make.ended("finished")))
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        assert "quit" in app.screen.query_one(KeyBar).labels
        await pilot.press("down", "escape")  # first the choice of a check is given up
        await pilot.pause()
        assert isinstance(app.screen, DashboardScreen)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, RunsScreen))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, DashboardScreen))
        assert "quit" not in app.screen.query_one(KeyBar).labels
        await pilot.press("q")
        await until(pilot, lambda: isinstance(app.screen, RunsScreen))
        await pilot.press("q")
        await pilot.pause()
        assert not app.is_running


async def test_leaving_sends_nothing_to_the_run(make: SimpleNamespace, warned: Path) -> None:
    app = make.app(warned)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        await pilot.press("q")
        await asyncio.sleep(0)
    assert app.return_code == 0
    assert list(RunDir(warned).control.iterdir()) == []


async def test_a_wide_screen_has_every_page_in_its_footer(make: SimpleNamespace, warned: Path) -> None:
    app = make.app(warned)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)

        def words() -> set[str]:
            return set(app.screen.query_one(KeyBar).labels)

        for columns, more in ((80, False), (160, True), (80, False)):
            await pilot.resize_terminal(columns, 48)
            await until(pilot, lambda more=more: ({"machine", "samples", "compare"} <= words()) is more)
            assert {"rules", "metrics", "log", "help"} <= words()
