"""The log, full screen: follow, search, errors, steps, filter, copy."""

import gzip
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pilots import until
from textual.pilot import Pilot

from launcher.console.pager import LogEntry
from launcher.metrics.records import StepRecord
from launcher.record.layout import RunDir
from tui.pages.log.screen import LogScreen
from tui.pages.log.view import LogView

HOME = (80, 24)
LOGS = Path(__file__).parent.parent / "data" / "logs"
ENGINE = "\x1b[36m(EngineCore pid=9)\x1b[0m"
TASK = "\x1b[36m(TaskRunnerV1 pid=3)\x1b[0m"
Compare = Callable[..., bool]


def console(lines: int = 3000) -> str:
    """Steps every 100 lines, an error at line 1500, an engine line every 500, words between."""
    made = []
    for number in range(1, lines + 1):
        if number == 1500:
            made.append("RuntimeError: CUDA error: device-side assert triggered")
        elif number % 500 == 0:
            made.append(f"{ENGINE} engine speaks {number}")
        elif number % 100 == 0:
            made.append(f"{TASK} step:{number // 100} - actor/entropy:0.5 - critic/score/mean:0.25")
        else:
            made.append(f"{TASK} \x1b[1mword\x1b[0m {number}")
    return "".join(line + "\n" for line in made)


@pytest.fixture
def run(make: SimpleNamespace) -> Path:
    log = console()
    steps = [
        StepRecord(step, make.start + step, log.encode().index(b"step:%d " % step), {"actor/entropy": 0.5})
        for step in range(1, 31)
        if step % 5
    ]
    path: Path = make.run(attempts=[steps], log=log)
    return path


async def opened(pilot: Pilot[Any], *keys: str) -> LogView:
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()
    await pilot.press("l")
    await pilot.pause()
    await pressed(pilot, *keys)
    assert isinstance(pilot.app.screen, LogScreen)
    return pilot.app.screen.view


async def pressed(pilot: Pilot[Any], *keys: str) -> None:
    await pilot.press(*keys)
    await pilot.pause()
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


def chosen(view: LogView) -> LogEntry:
    assert view.chosen is not None
    return view.chosen


def drawn(view: LogView) -> str:
    return "\n".join(view.render_line(row).text for row in range(view.size.height))


def state_line(pilot: Pilot[Any]) -> str:
    lines = pilot.app.screen.query_one("#log-state").lines  # type: ignore[attr-defined]
    return "".join(text for text, _ in lines[0])


async def test_it_opens_at_the_end_and_moves_through_the_whole_log(make: SimpleNamespace, run: Path) -> None:
    app = make.app(run)
    async with app.run_test(size=HOME) as pilot:
        view = await opened(pilot)
        assert chosen(view).shown == "(EngineCore) engine speaks 3000" and view.following
        assert "line 3,000 · following" in state_line(pilot)
        await pressed(pilot, *["up"] * 40)
        assert chosen(view).shown == "(TaskRunnerV1) word 2960" and not view.following
        await pressed(pilot, "home")
        assert chosen(view).shown == "(TaskRunnerV1) word 1"
        await pressed(pilot, "pagedown")
        assert chosen(view).text == f"word {view.room * 2 - 1}"
        await pressed(pilot, "f")
        assert chosen(view).text == "engine speaks 3000" and view.following
        assert len(view.entries) == view.room


async def test_a_log_that_grows_moves_only_a_screen_that_follows(make: SimpleNamespace, run: Path) -> None:
    app = make.app(run)
    async with app.run_test(size=HOME) as pilot:
        view = await opened(pilot, "up")
        with RunDir(run).attempt(1).console.open("a") as file:
            file.write("half a")
        before = chosen(view)
        await pilot.pause(1.2)
        assert chosen(view) == before
        await pressed(pilot, "f")
        assert chosen(view).text == "half a"
        with RunDir(run).attempt(1).console.open("a") as file:
            file.write(" line\nand more\n")
        await pilot.pause(1.2)
        assert [entry.text for entry in view.entries[-2:]] == ["half a line", "and more"]


async def test_search_goes_from_place_to_place_and_around(make: SimpleNamespace, run: Path) -> None:
    app = make.app(run)
    async with app.run_test(size=HOME) as pilot:
        view = await opened(pilot, "slash", *"SPEAKS 2", "enter")
        assert chosen(view).text == "engine speaks 2500"  # following: the newest is meant
        await pressed(pilot, "N")
        assert chosen(view).text == "engine speaks 2000"
        await pressed(pilot, "N")
        assert chosen(view).text == "engine speaks 2500" and "continued from the end" in state_line(pilot)
        await pressed(pilot, "n")
        assert chosen(view).text == "engine speaks 2000" and "continued from the top" in state_line(pilot)
        await pressed(pilot, "slash", *"nowhere", "enter")
        assert chosen(view).text == "engine speaks 2000"
        assert "no 'nowhere' in the log" in state_line(pilot)


async def test_matches_are_counted_and_shown_alone(make: SimpleNamespace, run: Path) -> None:
    app = make.app(run)
    async with app.run_test(size=HOME) as pilot:
        view = await opened(pilot, "slash", *"engine speaks", "enter")
        await pressed(pilot, "n")
        await until(pilot, lambda: "5 lines with 'engine speaks'" in state_line(pilot))
        await pressed(pilot, "ampersand")
        assert [entry.text for entry in view.entries] == [f"engine speaks {n}" for n in (500, 1000, 2000, 2500, 3000)]
        await pressed(pilot, "escape")
        assert len(view.entries) == view.room and isinstance(app.screen, LogScreen)


async def test_long_lines_wrap(make: SimpleNamespace, home: Path) -> None:
    app = make.app(make.run(log=f"first\n{'x' * 100} the end of it\n"))
    async with app.run_test(size=HOME) as pilot:
        view = await opened(pilot)
        assert "the end of it" not in drawn(view)
        await pressed(pilot, "a", "w")
        assert "the end of it" in drawn(view) and drawn(view).count("x") == 100


async def test_a_place_far_along_a_line_comes_into_sight(make: SimpleNamespace, home: Path) -> None:
    app = make.app(make.run(log=f"first\nstep:1 {'- a/b:0.5 ' * 100}- far/away:1 {'- c/d:2 ' * 100}\nlast\n"))
    async with app.run_test(size=HOME) as pilot:
        view = await opened(pilot, "slash", *"FAR/", "enter")
        assert chosen(view).text.startswith("step:1")
        assert "- far/away:1 -" in drawn(view)
        assert " first" in drawn(view)  # the lines around it stay where they are


async def test_errors_steps_and_lines(make: SimpleNamespace, run: Path) -> None:
    app = make.app(run)
    async with app.run_test(size=HOME) as pilot:
        view = await opened(pilot, "d")
        assert chosen(view).text.startswith("RuntimeError: CUDA error")
        assert any(role == "critical" for row in view.draw(*view.size) for _, role in row)
        await pressed(pilot, "number_sign", *"12", "enter")
        assert chosen(view).text.startswith("step:12 - ")
        await pressed(pilot, "number_sign", *":812", "enter")
        assert chosen(view).text == "word 812" and "line 812" in state_line(pilot)
        for asked, told in (("5", "no step 5"), (":9999", "no line 9999"), ("x", "enter a step number")):
            await pressed(pilot, "number_sign", *asked, "enter")
            assert told in state_line(pilot) and chosen(view).text == "word 812"


async def test_the_filter_shows_one_source(make: SimpleNamespace, run: Path) -> None:
    app = make.app(run)
    async with app.run_test(size=HOME) as pilot:
        view = await opened(pilot, "tab", "tab", "tab")
        assert "[engine]" in state_line(pilot)
        assert [entry.text for entry in view.entries] == [
            f"engine speaks {number}" for number in (500, 1000, 2000, 2500, 3000)
        ]
        await pressed(pilot, "up", "up", "tab")
        assert chosen(view).text == "engine speaks 2000" and len(view.entries) == view.room
        await pressed(pilot, "tab", "tab")
        assert view.entries == [] and "No lines of this source" in app.export_screenshot().replace("&#160;", " ")


async def test_copies_go_to_the_clipboard_and_to_a_file(make: SimpleNamespace, run: Path, tmp_path: Path) -> None:
    app = make.app(run)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot, "home", "space", "down", "down", "y")
        text = "(TaskRunnerV1) word 1\n(TaskRunnerV1) word 2\n(TaskRunnerV1) word 3\n"
        assert app.clipboard == text
        copied = tmp_path / "cache" / "copied" / f"{run.name}.txt"
        assert copied.read_text() == text
        await pressed(pilot, "number_sign", *"3", "enter", "y")
        assert copied.read_text() == "(TaskRunnerV1) step:3 - actor/entropy:0.5 - critic/score/mean:0.25\n"


async def test_escape_leaves_prompt_then_mark_then_screen(make: SimpleNamespace, run: Path) -> None:
    app = make.app(run)
    async with app.run_test(size=HOME) as pilot:
        view = await opened(pilot, "space", "slash", "l", "q")
        assert app.screen.query_one("#log-prompt").value == "lq"
        await pressed(pilot, "escape")
        assert view.has_focus and view.mark is not None
        await pressed(pilot, "escape")
        assert view.mark is None and isinstance(app.screen, LogScreen)
        await pressed(pilot, "escape")
        assert not isinstance(app.screen, LogScreen)


async def test_attempts_and_a_run_without_a_log(make: SimpleNamespace, home: Path) -> None:
    run = make.run(attempts=[make.recorded(3), make.recorded(3)], log="same\n")
    RunDir(run).attempt(1).console.write_text("the first attempt\n")
    RunDir(run).attempt(2).console.unlink()
    app = make.app(run)
    async with app.run_test(size=HOME) as pilot:
        view = await opened(pilot)
        assert view.entries == []
        RunDir(run).attempt(2).console.write_text("the second attempt\n")
        await pilot.pause(1.2)
        assert chosen(view).text == "the second attempt"
        await pressed(pilot, "left_square_bracket")
        assert chosen(view).text == "the first attempt" and "attempt 1" in state_line(pilot)
        await pressed(pilot, "left_square_bracket")
        assert "no older attempt" in state_line(pilot)
        await pressed(pilot, "right_square_bracket")
        assert chosen(view).text == "the second attempt"


@pytest.mark.parametrize("size", [(20, 5), (8, 3), (120, 40)])
async def test_any_size_and_wild_text(make: SimpleNamespace, size: tuple[int, int]) -> None:
    evil = "\x1b]0;owned\x07 [red]wide 漢字\x1b[2J\x9b3m\u202e" * 50 + "\n" + "\x00\xff\r\n" * 3 + "(a pid=1) \r50%\r"
    app = make.app(make.run(log=evil))
    async with app.run_test(size=size) as pilot:
        view = await opened(pilot, "right", "right", "left", "up", "up", "down", "pageup", "pagedown", "home")
        text = drawn(view)
        assert "\x1b" not in text and "\x9b" not in text and "\u202e" not in text


def real(make: SimpleNamespace, name: str) -> Path:
    path: Path = make.run(attempts=[make.recorded(3)])
    RunDir(path).attempt(1).console.write_bytes(gzip.decompress((LOGS / f"{name}.log.gz").read_bytes()))
    return path


@pytest.mark.parametrize(
    "keys", [("d",), ("slash", *"cache", "enter"), ("tab", "tab", "tab")], ids=["error", "search", "engine"]
)
def test_looks(snap_compare: Compare, make: SimpleNamespace, keys: tuple[str, ...]) -> None:
    async def ready(pilot: Pilot[Any]) -> None:
        await opened(pilot, *keys)

    assert snap_compare(make.app(real(make, "fail-kv-cache")), terminal_size=HOME, run_before=ready)
