"""Where the look of the screen comes from, and what is said about values that are not allowed."""

from pathlib import Path
from typing import Any

import pytest
from tables import tabled

from launcher.core.errors import UserError
from launcher.core.paths import settings_file
from launcher.settings import Settings, read


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))
    return tmp_path


def write(text: str) -> None:
    settings_file().write_text(text)


def test_without_anything_the_defaults_hold() -> None:
    assert read({}, {}) == Settings()
    write("# nothing yet\n")
    assert read({}, {}) == Settings()


def test_the_file_gives_way_to_the_environment_and_that_to_the_command_line() -> None:
    write("theme: light\nmouse: false\nascii: true\nanimations: basic\n")
    found = read({}, {})
    assert (found.theme, found.mouse, found.ascii, found.animations) == ("light", False, True, "basic")
    environment = {"PPO_TUI_THEME": "nord", "PPO_TUI_MOUSE": "1", "PPO_TUI_ASCII": "off", "TEXTUAL_ANIMATIONS": "NONE"}
    found = read({}, environment)
    assert (found.theme, found.mouse, found.ascii, found.animations) == ("nord", True, False, "none")
    found = read({"theme": "dark", "mouse": False, "ascii": True}, environment)
    assert (found.theme, found.mouse, found.ascii) == ("dark", False, True)
    assert read({"theme": None, "mouse": None, "ascii": None}, environment).theme == "nord"


def test_over_ssh_the_mouse_is_left_to_the_terminal_unless_it_is_wanted() -> None:
    ssh = {"SSH_CONNECTION": "10.0.0.1 50000 10.0.0.2 22"}
    assert not read({}, ssh).mouse
    assert read({"mouse": True}, ssh).mouse
    write("mouse: true")
    assert read({}, ssh).mouse


def test_keys_know_their_place() -> None:
    write("keys:\n  # the log on o\n  dashboard.log: o\n  log.search: slash, ctrl+f\n")
    keys = read({}, {}).keys
    assert {name: key.keys for name, key in keys.items()} == {"dashboard.log": "o", "log.search": "slash, ctrl+f"}
    assert keys["dashboard.log"].place == f"{settings_file()}, line 3: keys: dashboard.log"


@tabled
def test_a_bad_file_is_one_sentence_with_its_line(text: str, line: int, said: str) -> None:
    write(text)
    with pytest.raises(UserError) as caught:
        read({}, {})
    sentence = str(caught.value)
    assert sentence.startswith(f"{settings_file()}, line {line}: ")
    assert said in sentence and "\n" not in sentence


@pytest.mark.parametrize("content", [b"- dark\n", b"\xff\xfe\x00", b"dark\n"])
def test_a_file_of_something_else_is_one_sentence(content: bytes) -> None:
    settings_file().write_bytes(content)
    with pytest.raises(UserError, match=r"config\.yaml") as caught:
        read({}, {})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"PPO_TUI_MOUSE": "perhaps"}, "PPO_TUI_MOUSE: 'perhaps' is not allowed; use true or false"),
        ({"TEXTUAL_ANIMATIONS": "wild"}, "TEXTUAL_ANIMATIONS: 'wild' is not allowed; use one of none, basic, full"),
    ],
)
def test_a_bad_variable_is_named(environment: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError) as caught:
        read({}, environment)
    assert str(caught.value) == said


def test_the_linux_console_has_no_braille_unless_one_says_so() -> None:
    assert read({}, {"TERM": "linux"}).ascii and not read({}, {"TERM": "xterm"}).ascii
    assert not read({}, {"TERM": "linux", "PPO_TUI_ASCII": "0"}).ascii
