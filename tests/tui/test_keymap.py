"""Keys: each has an id and words, none fights with the terminal, and a user may move them."""

import ast
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from owners import owners, page_of, pages_beside
from pilots import drawn, message, until
from textual.binding import Binding
from textual.screen import Screen
from valid_json import validate

from launcher.core.paths import settings_file
from launcher.settings import Key
from tui.kit.dialogs.actions import ActionList, ActionsScreen
from tui.kit.dialogs.ask import AskScreen
from tui.kit.keymap import bindings, checked, commands
from tui.kit.keys import KEYS, LETTERS, MENU, TOGETHER
from tui.pages.dashboard.screen import DashboardScreen
from tui.pages.help.screen import HelpScreen
from tui.pages.log.screen import LogScreen

TERMINAL_KEYS = {"ctrl+b", "ctrl+a", "ctrl+s", "ctrl+q"}  # tmux, screen, flow control
EVERY = [(page, binding) for page in KEYS for binding in bindings(page)]
NAMES = [f"{page} {binding.key} {binding.action}" for page, binding in EVERY]


def asked(**keys: str) -> dict[str, Key]:
    return {name.replace("__", "."): Key(value, f"config.yaml, line 2: {name}") for name, value in keys.items()}


def test_the_table_has_the_keys_of_every_class_and_no_others() -> None:
    assert sorted(map(page_of, owners())) == sorted(KEYS)


def test_the_table_tells_which_keys_work_together() -> None:
    screens = {page_of(owner): pages_beside(owner) for owner in owners() if issubclass(owner, Screen)}
    assert {page: beside for page, beside in screens.items() if beside} == {k: set(v) for k, v in TOGETHER.items()}


def test_each_key_has_an_action_of_its_owner() -> None:
    for owner in owners():
        for binding in bindings(page_of(owner)):
            name = binding.action.partition("(")[0]
            assert name.startswith("app.") or hasattr(owner, f"action_{name}"), (owner, name)


@pytest.mark.parametrize(("page", "binding"), EVERY, ids=NAMES)
def test_a_key_has_an_id_and_words_and_leaves_the_terminal_its_own(page: str, binding: Binding) -> None:
    assert binding.id, "an id, so that a user can move it"
    assert binding.tooltip, "a sentence for the help screen"
    assert binding.key not in TERMINAL_KEYS
    prefix, _, name = binding.id.partition(".")
    assert prefix.islower() and name and name == name.lower() and "_" not in name


@pytest.mark.parametrize("page", KEYS)
def test_one_key_does_one_thing_on_a_page(page: str) -> None:
    """Two bindings of one key are two forms of one command: they have one id, and move together."""
    held: dict[str, str | None] = {}
    for binding in bindings(page):
        assert held.setdefault(binding.key, binding.id) == binding.id


def test_the_keys_are_known_without_any_screen() -> None:
    script = (
        "import sys, tui.kit.keymap; tui.kit.keymap.commands(); print([n for n in sys.modules if n.startswith('tui.')])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert sorted(ast.literal_eval(done.stdout)) == ["tui.kit", "tui.kit.keymap", "tui.kit.keys"]


def test_good_keys_are_taken_as_textual_names_them() -> None:
    good, wrong = checked(asked(dashboard__log="o, /,ctrl+f", log__search="f5,%,Z"))
    assert (good, wrong) == ({"dashboard.log": "o,slash,ctrl+f", "log.search": "f5,percent_sign,Z"}, [])


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"dashboard__lgo": "o"}, "unknown key id (did you mean 'dashboard.log'?)"),
        ({"dashboard__log": "ctlr+o"}, "'ctlr+o' is not a key"),
        ({"dashboard__log": "pagedwon"}, "'pagedwon' is not a key (did you mean 'pagedown'?)"),
        ({"dashboard__log": ""}, "'' is not a key"),
        ({"dashboard__log": "h"}, "h is already used by dashboard.checks"),
        ({"dashboard__log": "question_mark"}, "question_mark is already used by app.help"),
        ({"log__search": "down"}, "down is already used by move.down"),
        ({"dashboard__log": "o", "dashboard__checks": "o"}, "o is already used by dashboard.checks"),
    ],
)
def test_a_bad_key_is_a_sentence_and_changes_nothing(keys: dict[str, str], said: str) -> None:
    good, wrong = checked(asked(**keys))
    assert len(wrong) == 1 and said in wrong[0] and wrong[0].startswith("config.yaml, line 2: ")
    assert len(good) == len(keys) - 1


def test_keys_may_be_swapped() -> None:
    good, wrong = checked(asked(dashboard__log="h", dashboard__checks="l"))
    assert wrong == [] and good == {"dashboard.log": "h", "dashboard.checks": "l"}


async def test_a_moved_key_works_and_its_old_one_does_not(make: SimpleNamespace, warned: Path) -> None:
    app = make.app(warned, keys=asked(dashboard__log="o", log__back="b"))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.app.workers.wait_for_complete()
        await pilot.press("l")
        assert isinstance(app.screen, DashboardScreen)
        await pilot.press("o")
        assert isinstance(app.screen, LogScreen)
        await pilot.press("b")
        assert isinstance(app.screen, DashboardScreen)


@pytest.mark.parametrize("read_only", [False, True])
async def test_the_two_forms_of_stop_move_together(make: SimpleNamespace, warned: Path, read_only: bool) -> None:
    app = make.app(warned, read_only=read_only, keys=asked(dashboard__stop="f9"))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        active = app.screen.active_bindings
        assert "x" not in active
        assert active["f9"].binding.action == "stop"


async def test_help_shows_the_keys_of_the_user(make: SimpleNamespace, warned: Path) -> None:
    keys = asked(dashboard__log="f9", **{"dashboard__next-check": "ctrl+n"})
    app = make.app(warned, keys=keys)
    async with app.run_test(size=(80, 48)) as pilot:
        await pilot.app.workers.wait_for_complete()
        await pilot.press("question_mark")
        await pilot.pause()
        assert isinstance(app.screen, HelpScreen)
        picture = app.export_screenshot().replace("&#160;", " ")
        assert "  f9           " in picture and "  ↑ k ^n       " in picture


async def test_what_is_wrong_is_told_when_the_screen_opens(make: SimpleNamespace, warned: Path) -> None:
    app = make.app(warned, keys=asked(dashboard__log="h"))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert "h is already used by dashboard.checks" in message(app)


@pytest.mark.slow
def test_the_command_lists_them_with_those_of_the_user(home: Path) -> None:
    settings_file().write_text("keys:\n  dashboard.log: o\n  dashboard.nothing: p\n")
    told = subprocess.run(
        [sys.executable, "-c", "from tui.entry import main; main()", "config", "keys", "--json"],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    validate(["config", "keys", "--json"], told.stdout)
    found = {key["id"]: key for key in map(json.loads, told.stdout.splitlines())}
    assert found.keys() == commands().keys()
    log = found["dashboard.log"]
    assert (log["keys"], log["default"]) == (["o"], ["l"])
    assert "line 3: keys: dashboard.nothing: unknown key id" in told.stderr


def test_a_letter_has_one_meaning_on_all_pages() -> None:
    dialogs = {"actions", "ask", "choose", "confirm", "paste", "help", "reference"}
    moves = {"k", "j", "g", "G", "q"}
    assert len(set(LETTERS.values())) == len(LETTERS) and not moves & set(LETTERS.values())
    strays = [
        (page, binding.key, binding.id)
        for page in KEYS
        if page not in dialogs
        for binding in bindings(page)
        if len(binding.key) == 1 and binding.key.isalpha() and binding.key not in {*LETTERS.values(), *moves}
    ]
    assert strays == []
    actions: dict[str, set[str]] = {}
    for page in KEYS:
        for binding in bindings(page) if page not in dialogs else ():
            if len(binding.key) == 1 and binding.key in LETTERS.values() and binding.description not in ("", "back"):
                actions.setdefault(binding.key, set()).add(binding.description)
    several = {key: said for key, said in actions.items() if len(said) > 1}
    # the page of responses compares them, the log has the errors that the diagnosis explains
    assert several == {"c": {"compare", "other steps"}, "d": {"diagnosis", "errors"}}
    assert len({*actions, *moves}) <= 34, "room for pages to come"


def test_an_action_has_one_letter_in_all_menus_and_a_menu_one_action_for_a_letter() -> None:
    letters: dict[str, set[str]] = {}
    for _, binding in EVERY:
        if binding.id in MENU:
            letters.setdefault(binding.description, set()).add(MENU[binding.id])
    assert {words: found for words, found in letters.items() if len(found) > 1} == {}
    for page in KEYS:
        together = bindings(page, *TOGETHER.get(page, ()))
        rare = [str(binding.id) for binding in together if binding.id in MENU]
        assert len({MENU[name] for name in rare}) == len(set(rare)), page
        own = [binding.id for binding in bindings(page) if binding.id in MENU]
        screens = [page, *(other for other, beside in TOGETHER.items() if page in beside)]
        assert not own or any(binding.id == "page.actions" for other in screens for binding in bindings(other)), (
            f"{page} has actions without a menu"
        )


async def test_the_menu_has_the_rare_actions_of_the_page_and_does_one(make: SimpleNamespace, warned: Path) -> None:
    app = make.app(warned)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.app.workers.wait_for_complete()
        await pilot.press("a")
        await until(pilot, lambda: isinstance(app.screen, ActionsScreen) and bool(app.screen.query(ActionList)))
        listed = app.screen.query_one(ActionList)
        assert set(listed.names) == {
            str(binding.id) for binding in bindings("dashboard", "run pages") if binding.id in MENU
        }
        assert "Merge" not in drawn(app, ActionList) and "no complete checkpoint yet" in drawn(app, ActionList)
        listed.move_to("dashboard.export")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, AskScreen))
        await pilot.press("escape", "a", "x")
        await until(pilot, lambda: isinstance(app.screen, DashboardScreen) and app.screen.lens.view.across != "step")
        await pilot.press("a", "m")
        await until(pilot, lambda: "No complete checkpoint yet" in message(app))


async def test_the_menu_may_have_another_key(make: SimpleNamespace, warned: Path) -> None:
    app = make.app(warned, keys=asked(page__actions="f4"))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.app.workers.wait_for_complete()
        titles = {command.title for command in app.get_system_commands(app.screen)}
        assert "Export (f4 e)" in titles and "Actions (f4)" in titles
        await pilot.press("f4", "e")
        await until(pilot, lambda: isinstance(app.screen, AskScreen))


async def test_a_user_keeps_a_key_for_an_action_of_the_menu(make: SimpleNamespace, warned: Path) -> None:
    app = make.app(warned, keys=asked(dashboard__export="E", chart__smooth="z"))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.app.workers.wait_for_complete()
        await pilot.press("z")
        assert isinstance(app.screen, DashboardScreen) and app.screen.lens.view.smoothing
        await pilot.press("a")
        await until(pilot, lambda: isinstance(app.screen, ActionsScreen) and bool(app.screen.query(ActionList)))
        assert "e E" in drawn(app, ActionList), "it stays in the menu"
        await pilot.press("escape", "E")
        await until(pilot, lambda: isinstance(app.screen, AskScreen))
