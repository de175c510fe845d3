"""Pages and dialogs are left once: keys, clicks and late work that come meanwhile change nothing else."""

import ast
import asyncio
import threading
from functools import partial
from pathlib import Path

import pytest
from every_screen import MAKERS, ROADS, back, walk
from owners import owners
from pilots import at_once
from textual.events import Paste
from textual.screen import Screen
from textual.worker import WorkerFailed

import tui
from launcher.record.layout import RunDir
from tui import palette
from tui.kit.dialogs.choose import ChooseScreen, ConfirmScreen
from tui.kit.dialogs.paste import PasteScreen
from tui.kit.page import Dialog, Page
from tui.pages.log.screen import LogScreen
from tui.pages.runs.screen import RunsScreen

LOGS = Path(__file__).parents[1] / "data" / "logs"


def test_every_screen_is_a_page():
    screens = {owner for owner in owners() if issubclass(owner, Screen)}
    assert all(issubclass(screen, Page) for screen in screens)
    assert all(issubclass(screen, Dialog) for screen in screens if screen.__module__.startswith("tui.kit.dialogs"))


SCRIPT = "python3 -m verl.trainer.main_ppo \\\n  data.train_batch_size=32\n"


async def test_answers_given_several_times_count_once(make, warned, monkeypatch):
    monkeypatch.setattr("tui.pages.runs.preset_actions._write", lambda choice, narrate: Path("data"))
    make.run(hex_id="0ld", name="older", state=make.ended("finished", created=make.start - 100))
    async with make.open() as user:
        page, answers = user.screen, []
        for opens, answer in (("a d", "t"), ("a d", "escape"), ("D", "n"), ("D", "enter")):
            await user("end" if opens == "a d" else "home", *([] if opens == "a d" else ["down"]), opens)
            await user(lambda: isinstance(user.screen, ChooseScreen | ConfirmScreen) and user.screen.is_mounted)
            at_once(user, [answer] * 4)
            await user(lambda: user.screen is page, "...")
            assert user.app.screen_stack[1:] == [page]
        user.app.push_screen(ChooseScreen("Which?", "", [("a", "one"), ("b", "two")]), answers.append)
        await user("ChooseScreen")
        button = user.screen.query("Button").last()
        for _ in range(3):
            button.press()
        await user("...")
        assert user.screen is page and answers == ["b"]


async def test_late_work_waits_for_what_was_opened_over_its_page(make, warned):
    async with make.open() as user:
        page, answers = user.screen, []
        below = ChooseScreen("Which?", "", [("a", "one")])
        user.app.push_screen(below, answers.append)
        await user()
        user.app.action_help()
        await user("HelpScreen")
        below.dismiss("a")
        below.dismiss("b")
        await user("HelpScreen")
        assert not answers
        await user("escape", lambda: user.screen is page)
        assert answers == ["a"] and below.left and not page.left
        user.app.action_help()
        await user("HelpScreen")
        user.app.routes.show_run(warned, page, read_only=False)
        await user("HelpScreen", "escape", "DashboardScreen")
        assert user.app.screen_stack[1:] == [user.screen]


@pytest.mark.nightly("tui/", "tests/support/every_screen.py", every=4)
@pytest.mark.parametrize("part", range(4))
async def test_leaving_several_times_at_once_leaves_one_page(make, warned, part):
    earlier = make.ended("finished", created=make.start - 100)
    make.run(hex_id="0ld", name="older", attempts=[make.recorded(3)], state=earlier)
    make.write_responses(RunDir(warned))
    async with make.open(warned) as user:
        dashboard = user.screen
        for page in [*ROADS, *MAKERS][part::4]:
            if page in ("OpenedDashboard", "RunsScreen"):
                continue
            await walk(user, page)
            await user()
            below = user.app.screen_stack[-2]
            at_once(user, ["escape"] * 4)
            await user(lambda below=below: user.screen is below or user.is_on("RunsScreen"), 0.1)
            assert user.app.is_running and isinstance(user.screen, Page) and not user.screen.left, page
            if user.is_on("RunsScreen"):  # further presses led on from the page below
                user.app.routes.show_run(warned, None, read_only=False)
                await user("DashboardScreen", "...")
                dashboard = user.screen
            await back(user, dashboard)


async def test_the_way_back_ends_at_the_list(make, warned):
    async with make.open(warned) as user:
        at_once(user, ["l", "question_mark"])  # keys typed ahead go to the page that opens
        await user("HelpScreen")
        assert isinstance(user.app.screen_stack[-2], LogScreen)
        await user("escape", "LogScreen")
        log = user.screen
        user.app.push_screen(PasteScreen("Text?", "", lambda text: None))
        await user("PasteScreen")
        at_once(user, ["escape"] * 5)
        await user(lambda: not user.is_on("PasteScreen"), 0.1)
        assert user.screen is log, "a burst that cancels a paste leaves the page below"
        await user("escape", "DashboardScreen")
        for key in ("escape", "backspace"):
            at_once(user, [key] * 5)
            await user("RunsScreen", "...", 0.1)
            page = user.screen
            await user("escape", "escape", "escape", "...")
            assert user.screen is page and user.app.is_running
            await user("enter", "DashboardScreen", "...")


async def test_a_key_that_does_nothing_here_says_why(make, warned):
    async with make.open(warned) as user:
        for key, why in (
            ("Q", "Q (queue) does nothing here; it works in: Runs, Launch"),
            ("R", "No preset is recorded"),
            ("w", "w (save) does nothing here; it works in: Editor"),
        ):
            await user(key, lambda why=why: user.message == why)


async def test_a_dialog_shows_its_keys_also_while_something_is_wrong(make, warned):
    async with make.open(warned) as user:
        for dialog in (
            ChooseScreen("Which?", "", [("a", "one")]),
            ConfirmScreen("Sure?", "", "y  yes"),
            PasteScreen("Text?", "", lambda text: None),
            MAKERS["AskScreen"](),
        ):
            user.app.push_screen(dialog)
            await user(lambda dialog=dialog: dialog.is_mounted, "backspace", *["delete"] * 4)
            assert "esc  cancel" in str(user.one("#keys").render()) and user.one("#keys").region.height
            await user("escape", "DashboardScreen")


async def test_a_log_a_script_and_a_path_are_imported_by_the_same_question(make, home, tmp_path):
    (tmp_path / "my run.sh").write_text(SCRIPT)
    async with make.open() as user:
        await user("i", "PasteScreen")
        user.one("TextArea").insert(str(tmp_path / "my run.sh").replace(" ", "\\ "))
        at_once(user, ["enter"])
        await user("AskScreen", lambda: user.one("Input").value == "my run", "escape")
        while not user.is_on("RunsScreen"):
            await user("escape")
        for text, shows, word in (
            (SCRIPT, "AskScreen", "preset"),
            (f"{LOGS / 'nan.log.gz'}", "DashboardScreen", "NUM-1"),
        ):
            await user("i", "PasteScreen")
            user.app.post_message(Paste(text))
            await user(lambda: user.one("TextArea").text, "f2", shows, lambda word=word: word in user.seen)
            while shows == "AskScreen" and not user.is_on("RunsScreen"):
                await user("escape")


async def test_the_palette_in_the_list_finds_the_metrics_of_the_selected_run(make, warned, monkeypatch):
    # each key cancels the search of the key before, while the run is still being read
    read, typed = palette._read, threading.Event()
    monkeypatch.setattr(palette, "_read", lambda run: read(run) if typed.wait(60) else None)
    async with make.open() as user:
        at_once(user, ["colon"])
        await user(lambda: type(user.screen).__name__ == "Palette" and user.screen.is_mounted, *"actor/entropy")
        typed.set()
        await user(lambda: "Metric actor/entropy" in user.seen, "down", "down", "up")
        at_once(user, ["enter"] * 3)
        await user("MetricScreen")
        assert isinstance(user.app.screen_stack[-2], RunsScreen)


async def test_a_name_that_no_file_can_have_is_refused(make, warned):
    async with make.open(warned) as user:
        await user("a", "e", "AskScreen")
        for text, why in (("x" * 5000, "too long"), ("~nobody-here/x.csv", "home")):
            user.one("Input").value = text
            await user(lambda why=why: why in str(user.one("#wrong").content))


async def test_work_that_ends_while_the_program_ends_finds_no_widgets(make, warned):
    async def look(open_):
        while app.is_running and not open_:
            await asyncio.sleep(0)
        page.query_one("#removed")

    async def leave(*, open_):
        nonlocal app, page
        app = make.app(warned)
        async with make.open(app) as user:
            page = user.screen
            page.in_worker(partial(look, open_), "late")
            await user()

    app = page = None
    await leave(open_=False)
    with pytest.raises(WorkerFailed, match="#removed"):  # on an open page it is a defect
        await leave(open_=True)


def test_workers_are_given_functions():
    """A worker that is cancelled before it starts awaits no coroutine: Python warns of each that was given to one."""
    given = [
        f"{path}:{node.lineno}"
        for path in Path(tui.__path__[0]).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("run_worker", "in_worker")
        if isinstance(node.args[0], ast.Call) and getattr(node.args[0].func, "id", "") not in ("cast", "partial")
    ]
    assert given == []
