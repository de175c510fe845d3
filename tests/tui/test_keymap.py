"""Keys: each has an id and words, none fights with the terminal, and a user may move them."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest
from owners import owners, page_of, pages_beside
from pilots import words
from tables import tabled
from textual.screen import Screen
from valid_json import validate

from launcher.core.paths import settings_file
from launcher.settings import Key
from tui.kit.keymap import bindings, checked, commands, page_name
from tui.kit.keys import KEYS, LETTERS, MENU, TOGETHER

TERMINAL_KEYS = {"ctrl+b", "ctrl+a", "ctrl+s", "ctrl+q"}  # tmux, screen, flow control
EVERY = [(page, binding) for page in KEYS for binding in bindings(page)]


def asked(**keys):
    return {name.replace("__", "."): Key(value, f"config.yaml, line 2: {name}") for name, value in keys.items()}


def test_the_table_has_the_keys_of_every_class_and_which_work_together():
    assert sorted(map(page_of, owners())) == sorted(KEYS)
    screens = {page_of(owner): pages_beside(owner) for owner in owners() if issubclass(owner, Screen)}
    assert {page: beside for page, beside in screens.items() if beside} == {k: set(v) for k, v in TOGETHER.items()}
    for owner in owners():
        assert getattr(owner, "PAGE_NAME", "") in ("", page_name(page_of(owner))), owner
        for binding in bindings(page_of(owner)):
            name = binding.action.partition("(")[0]
            assert name.startswith("app.") or hasattr(owner, f"action_{name}"), (owner, name)


@pytest.mark.parametrize("page", KEYS)
def test_a_key_does_one_thing_has_an_id_and_words_and_leaves_the_terminal_its_own(page):
    """Two bindings of one key are two forms of one command: they have one id, and move together."""
    held = {}
    for binding in bindings(page):
        assert held.setdefault(binding.key, binding.id) == binding.id
        assert binding.id and binding.tooltip, "an id, so that a user can move it; a sentence for the help screen"
        assert binding.key not in TERMINAL_KEYS
        prefix, _, name = binding.id.partition(".")
        assert prefix.islower() and name and name == name.lower() and "_" not in name


def test_good_keys_are_taken_as_textual_names_them_and_may_be_swapped():
    good = {"dashboard.log": "o,slash,ctrl+f", "log.search": "f5,percent_sign,Z"}
    assert checked(asked(dashboard__log="o, /,ctrl+f", log__search="f5,%,Z")) == (good, [])
    swapped = {"dashboard.log": "h", "dashboard.checks": "l"}
    assert checked(asked(dashboard__log="h", dashboard__checks="l")) == (swapped, [])


def test_the_keys_are_known_without_any_screen():
    script = "import sys, tui.kit.keymap as k; k.commands(); print([n for n in sys.modules if n.startswith('tui.')])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert sorted(ast.literal_eval(done.stdout)) == ["tui.kit", "tui.kit.keymap", "tui.kit.keys"]


@tabled
def test_a_bad_key_is_a_sentence_and_changes_nothing(keys, said):
    good, wrong = checked(asked(**keys))
    assert len(wrong) == 1 and said in wrong[0] and wrong[0].startswith("config.yaml, line 2: ")
    assert len(good) == len(keys) - 1


async def test_a_moved_key_works_and_its_old_one_does_not(make, warned):
    moved = {"dashboard__next-check": "ctrl+n", "dashboard__export": "E", "chart__smooth": "z"}
    keys = asked(dashboard__log="f9", log__back="b", page__actions="f4", **moved)
    async with make.open(warned, keys=keys, size=(80, 48)) as user:
        await user("l", "DashboardScreen", "f9", "LogScreen", "b", "DashboardScreen", "question_mark", "HelpScreen")
        shown = words(user.one("HelpText").draw(72, 1000))
        assert "  f9           " in shown and "  ↑ k ^n       " in shown
        await user("escape", "z", "DashboardScreen")
        assert user.screen.lens.view.smoothing
        titles = {command.title for command in user.app.get_system_commands(user.screen)}
        assert "Bundle (f4 b)" in titles and "Actions (f4)" in titles
        await user("f4", "ActionsScreen", lambda: "e E" in user.drawn("ActionList"))  # it stays in the menu
        await user("e", "AskScreen", "escape", "E", "AskScreen")


@pytest.mark.parametrize("read_only", [False, True])
async def test_the_two_forms_of_stop_move_together_and_what_is_wrong_is_told(make, warned, read_only):
    keys = asked(dashboard__stop="f9", dashboard__log="h")
    async with make.open(warned, read_only=read_only, keys=keys) as user:
        assert "h is already used by dashboard.checks" in user.message
        active = user.screen.active_bindings
        assert "x" not in active and active["f9"].binding.action == "stop"


@pytest.mark.slow
def test_the_command_lists_them_with_those_of_the_user(home):
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


def test_a_letter_has_one_meaning_on_all_pages():
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
    actions = {}
    for page in KEYS:
        for binding in bindings(page) if page not in dialogs else ():
            if len(binding.key) == 1 and binding.key in LETTERS.values() and binding.description not in ("", "back"):
                actions.setdefault(binding.key, set()).add(binding.description)
    several = {key: said for key, said in actions.items() if len(said) > 1}
    # the page of responses compares them, the log has the errors that the diagnosis explains
    assert several == {"c": {"compare", "other steps"}, "d": {"diagnosis", "errors"}}
    assert len({*actions, *moves}) <= 34, "room for pages to come"


def test_an_action_has_one_letter_in_all_menus_and_a_menu_one_action_for_a_letter():
    letters = {}
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


async def test_the_menu_has_the_rare_actions_of_the_page_and_does_one(make, warned):
    async with make.open(warned) as user:
        await user("a", "ActionsScreen", lambda: user.screen.query("ActionList"))
        listed = user.one("ActionList")
        rare = {str(binding.id) for binding in bindings("dashboard", "run pages") if binding.id in MENU}
        assert set(listed.names) == rare
        assert "Merge" not in user.drawn("ActionList") and "no complete checkpoint yet" in user.drawn("ActionList")
        listed.move_to("dashboard.export")
        await user("enter", "AskScreen", "escape", "a", "x", "DashboardScreen")
        await user(lambda: user.screen.lens.view.across != "step", "a", "m")
        await user(lambda: "No complete checkpoint yet" in user.message)
