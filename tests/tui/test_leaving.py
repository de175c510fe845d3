"""Pages and dialogs are left once: keys, clicks and late work that come meanwhile change nothing else."""

import ast
import asyncio
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from every_screen import MAKERS, ROADS, settled, walk
from owners import owners
from pilots import at_once, message, picture, until
from textual.events import Paste
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Button, Input, Static, TextArea
from textual.worker import WorkerFailed

import tui
from launcher.record.layout import RunDir
from tui import palette
from tui.kit.dialogs.choose import ChooseScreen, ConfirmScreen
from tui.kit.dialogs.paste import PasteScreen
from tui.kit.page import Dialog, Page
from tui.pages.dashboard.screen import DashboardScreen
from tui.pages.help.screen import HelpScreen
from tui.pages.log.screen import LogScreen
from tui.pages.metrics.metric import MetricScreen
from tui.pages.runs.screen import RunsScreen
from tui.palette import Palette

SIZE = (80, 24)
LOGS = Path(__file__).parents[1] / "data" / "logs"


async def in_list(pilot: Pilot[Any]) -> None:
    await until(pilot, lambda: isinstance(pilot.app.screen, RunsScreen) and pilot.app.screen.is_mounted)
    await settled(pilot)


def test_every_screen_is_a_page() -> None:
    screens = {owner for owner in owners() if issubclass(owner, Screen)}
    assert all(issubclass(screen, Page) for screen in screens)
    assert all(issubclass(screen, Dialog) for screen in screens if screen.__module__.startswith("tui.kit.dialogs"))


@pytest.mark.parametrize(
    ("opens", "answer"), [("a d", "t"), ("a d", "escape"), ("D", "n"), ("D", "enter")], ids=lambda key: str(key)
)
async def test_an_answer_given_several_times_counts_once(
    make: SimpleNamespace, warned: Path, opens: str, answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui.pages.runs.preset_actions._write", lambda choice, narrate: Path("data"))
    make.run(hex_id="0ld", name="older", state=make.ended("finished", created=make.start - 100))
    app = make.app()
    async with app.run_test(size=SIZE) as pilot:
        await in_list(pilot)
        page = app.screen
        await pilot.press("end" if opens == "a d" else "down")
        await pilot.press(opens)
        await until(pilot, lambda: isinstance(app.screen, ChooseScreen | ConfirmScreen) and app.screen.is_mounted)
        at_once(pilot, [answer] * 4)
        await until(pilot, lambda: app.screen is page)
        await settled(pilot)
        assert app.screen is page and app.screen_stack[1:] == [page]


async def test_a_button_that_is_pressed_twice_answers_once(make: SimpleNamespace, warned: Path) -> None:
    app = make.app()
    async with app.run_test(size=SIZE) as pilot:
        await in_list(pilot)
        page, answers = app.screen, list[str | None]()
        app.push_screen(ChooseScreen("Which?", "", [("a", "one"), ("b", "two")]), answers.append)
        await until(pilot, lambda: isinstance(app.screen, ChooseScreen) and app.screen.is_mounted)
        button = app.screen.query(Button).last()
        for _ in range(3):
            button.press()
        await settled(pilot)
        assert app.screen is page and answers == ["b"]


async def test_work_that_ends_under_another_page_waits_for_it(make: SimpleNamespace, warned: Path) -> None:
    app = make.app()
    async with app.run_test(size=SIZE) as pilot:
        await in_list(pilot)
        page, answers = app.screen, list[str | None]()
        below = ChooseScreen("Which?", "", [("a", "one")])
        app.push_screen(below, answers.append)
        await pilot.pause()
        app.action_help()
        await until(pilot, lambda: isinstance(app.screen, HelpScreen) and app.screen.is_mounted)
        below.dismiss("a")
        below.dismiss("b")
        await pilot.pause()
        assert isinstance(app.screen, HelpScreen) and not answers
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is page)
        assert answers == ["a"]


@pytest.mark.parametrize("page", [name for name in (*ROADS, *MAKERS) if name not in ("OpenedDashboard", "RunsScreen")])
async def test_leaving_several_times_at_once_leaves_one_page(make: SimpleNamespace, warned: Path, page: str) -> None:
    make.run(
        hex_id="0ld", name="older", attempts=[make.recorded(3)], state=make.ended("finished", created=make.start - 100)
    )
    make.write_responses(RunDir(warned))
    app = make.app(warned)
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        await walk(pilot, page)
        await pilot.pause()
        below = app.screen_stack[-2]
        at_once(pilot, ["escape"] * 4)
        await until(pilot, lambda: app.screen is below or isinstance(app.screen, RunsScreen))
        await pilot.pause(0.1)
        assert app.is_running and isinstance(app.screen, Page) and not app.screen.left


async def test_keys_typed_ahead_go_to_the_page_that_opens(make: SimpleNamespace, warned: Path) -> None:
    app = make.app(warned)
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        at_once(pilot, ["l", "question_mark"])
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        assert isinstance(app.screen_stack[-2], LogScreen)


async def test_the_list_is_where_the_way_back_ends(make: SimpleNamespace, warned: Path) -> None:
    app = make.app(warned)
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        await pilot.press("escape")
        await in_list(pilot)
        page = app.screen
        for _ in range(3):
            await pilot.press("escape")
        await settled(pilot)
        assert app.screen is page
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, DashboardScreen))


async def test_a_key_that_does_nothing_here_says_why(make: SimpleNamespace, warned: Path) -> None:
    app = make.app(warned)
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        for key, why in (
            ("Q", "Q (queue) does nothing here; it works in: list, launch"),
            ("R", "No preset is recorded"),
            ("w", "w (save) does nothing here; it works in: editor"),
        ):
            await pilot.press(key)
            await until(pilot, lambda why=why: message(app) == why)


@pytest.mark.parametrize(
    "make_dialog",
    [
        lambda: ChooseScreen("Which?", "", [("a", "one")]),
        lambda: ConfirmScreen("Sure?", "", "y  yes"),
        lambda: PasteScreen("Text?", "", lambda text: None),
        MAKERS["AskScreen"],
    ],
    ids=["choose", "confirm", "paste", "ask"],
)
async def test_a_dialog_shows_its_keys_also_while_something_is_wrong(
    make: SimpleNamespace, warned: Path, make_dialog: Callable[[], Screen[Any]]
) -> None:
    app, dialog = make.app(warned), make_dialog()
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        app.push_screen(dialog)
        await until(pilot, lambda: dialog.is_mounted)
        await pilot.press("backspace", *["delete"] * 4)
        await pilot.pause()
        shown = str(dialog.query_one("#keys").render())
        assert "esc  cancel" in shown and dialog.query_one("#keys").region.height


async def test_a_log_and_a_pasted_script_are_imported_by_the_same_question(
    make: SimpleNamespace, home: Path, tmp_path: Path
) -> None:
    script, log = "python3 -m verl.trainer.main_ppo \\\n  data.train_batch_size=32\n", f"{LOGS / 'nan.log.gz'}"
    for text, shows in ((script, "AskScreen"), (log, "DashboardScreen")):
        app = make.app()
        async with app.run_test(size=SIZE) as pilot:
            await in_list(pilot)
            await pilot.press("i")
            await until(pilot, lambda app=app: isinstance(app.screen, PasteScreen) and app.screen.is_mounted)
            app.post_message(Paste(text))
            await until(pilot, lambda app=app: app.screen.query_one(TextArea).text)
            await pilot.press("f2")
            await until(pilot, lambda app=app, shows=shows: type(app.screen).__name__ == shows)


async def test_the_palette_in_the_list_finds_the_metrics_of_the_selected_run(
    make: SimpleNamespace, warned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # each key cancels the search of the key before, while the run is still being read
    read, typed = palette._read, threading.Event()
    monkeypatch.setattr(palette, "_read", lambda run: read(run) if typed.wait(60) else None)
    app = make.app()
    async with app.run_test(size=SIZE) as pilot:
        await in_list(pilot)
        at_once(pilot, ["colon"])
        await until(pilot, lambda: isinstance(app.screen, Palette) and app.screen.is_mounted)
        await pilot.press(*"actor/entropy")
        typed.set()
        await until(pilot, lambda: "Metric actor/entropy" in "\n".join(picture(app)))
        await pilot.press("down", "down", "up")
        at_once(pilot, ["enter"] * 3)
        await until(pilot, lambda: isinstance(app.screen, MetricScreen))
        assert isinstance(app.screen_stack[-2], RunsScreen)


async def test_a_name_that_no_file_can_have_is_refused(make: SimpleNamespace, warned: Path) -> None:
    app = make.app(warned)
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        await pilot.press("a", "e")
        await until(pilot, lambda: type(app.screen).__name__ == "AskScreen" and app.screen.is_mounted)
        for text, why in (("x" * 5000, "too long"), ("~nobody-here/x.csv", "home")):
            app.screen.query_one(Input).value = text
            await until(pilot, lambda why=why: why in str(app.screen.query_one("#wrong", Static).content))


async def test_a_path_is_typed_into_the_import_and_entered(make: SimpleNamespace, home: Path, tmp_path: Path) -> None:
    (tmp_path / "my run.sh").write_text("python3 -m verl.trainer.main_ppo \\\n  data.train_batch_size=32\n")
    app = make.app()
    async with app.run_test(size=SIZE) as pilot:
        await in_list(pilot)
        at_once(pilot, ["i"])
        await until(pilot, lambda: isinstance(app.screen, PasteScreen) and app.screen.is_mounted)
        path = str(tmp_path / "my run.sh").replace(" ", "\\ ")
        app.screen.query_one(TextArea).insert(path)
        at_once(pilot, ["enter"])
        await until(pilot, lambda: type(app.screen).__name__ == "AskScreen")


async def test_late_work_waits_for_what_was_opened_over_its_page(make: SimpleNamespace, warned: Path) -> None:
    app = make.app()
    async with app.run_test(size=SIZE) as pilot:
        await in_list(pilot)
        page = app.screen
        assert isinstance(page, Page)
        app.action_help()
        await until(pilot, lambda: isinstance(app.screen, HelpScreen) and app.screen.is_mounted)
        app.routes.show_run(warned, page, read_only=False)
        await pilot.pause()
        assert isinstance(app.screen, HelpScreen)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, DashboardScreen))
        assert app.screen_stack[1:] == [app.screen]


async def test_work_that_ends_while_the_program_ends_finds_no_widgets(make: SimpleNamespace, warned: Path) -> None:
    async def look(open_: bool) -> None:
        while app.is_running and not open_:
            await asyncio.sleep(0)
        page.query_one("#removed")

    async def leave(*, open_: bool) -> None:
        nonlocal app, page
        app = make.app(warned)
        async with app.run_test(size=SIZE) as pilot:
            await settled(pilot)
            page = app.screen
            page.in_worker(partial(look, open_), "late")
            await pilot.pause()

    app = page = None
    await leave(open_=False)
    with pytest.raises(WorkerFailed, match="#removed"):  # on an open page it is a defect
        await leave(open_=True)


@pytest.mark.parametrize("key", ["escape", "backspace"])
async def test_the_way_back_to_the_list_ends_there(make: SimpleNamespace, warned: Path, key: str) -> None:
    app = make.app(warned)
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        at_once(pilot, [key] * 5)
        await in_list(pilot)
        await pilot.pause(0.1)
        assert app.is_running and isinstance(app.screen, RunsScreen)


async def test_a_burst_that_cancels_a_paste_leaves_the_page_below(make: SimpleNamespace, warned: Path) -> None:
    app = make.app(warned)
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        page = app.screen
        await pilot.press("l")
        await until(pilot, lambda: isinstance(app.screen, LogScreen) and app.screen.is_mounted)
        log = app.screen
        app.push_screen(PasteScreen("Text?", "", lambda text: None))
        await until(pilot, lambda: isinstance(app.screen, PasteScreen) and app.screen.is_mounted)
        at_once(pilot, ["escape"] * 5)
        await until(pilot, lambda: app.screen is not page and not isinstance(app.screen, PasteScreen))
        await pilot.pause(0.1)
        assert app.screen is log


def test_workers_are_given_functions() -> None:
    """A worker that is cancelled before it starts awaits no coroutine: Python warns of each that was given to one."""
    given = [
        f"{path}:{node.lineno}"
        for path in Path(tui.__path__[0]).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("run_worker", "in_worker")
        if isinstance(node.args[0], ast.Call) and getattr(node.args[0].func, "id", "") not in ("cast", "partial")
    ]
    assert given == []
