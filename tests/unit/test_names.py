"""One name per job: a removed name is an error with the new one, nothing shows it, and no option has two names."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from commands import call
from doc_pages import ALL, ROOT
from page_program import root, tree

from launcher.core.tables import read_tables

MEANINGS = read_tables(ROOT / "tests/data/option_meanings.toml")
OTHER = read_tables(ROOT / "launcher/cli/other_names.toml")
ROWS = re.findall(r"^\| `(.+)` \| `(.+)` \|$", (ROOT / "docs/start/upgrade.md").read_text("utf-8"), re.MULTILINE)
REMOVED = [row for row in ROWS if ":" not in row[0]]  # commands and options, and what they are now
SETTINGS = [(old[:-1], new[:-1]) for old, new in ROWS if old.endswith(":")]


def options_of(path: str) -> set[str]:
    command = tree()[path][0] if path else root()[0]
    return {option for each in command.params for option in each.opts}


def test_every_other_name_leads_to_a_command_or_an_option() -> None:
    for path, names in OTHER.items():
        group = path.partition(" ")[2]
        for name, new in names.items():
            command, _, option = new.rpartition(" ") if new.split()[-1].startswith("--") else (new, "", "")
            assert f"{group} {name}".strip() not in tree() and (not command or command in tree()), (path, name)
            assert not option or option in options_of(command or group), (path, name)


def test_an_option_has_one_meaning_and_a_meaning_one_option() -> None:
    everywhere = {"": root()[0]} | {path: command for path, (command, _) in tree().items()}
    for path, command in everywhere.items():
        for each in command.params:
            if each.param_type_name == "option":
                meant = {name for name, meaning in MEANINGS.items() if re.match(meaning, each.help)}
                assert meant == {next(name for name in each.opts if name.startswith("--"))}, (path, each.help)


def test_the_main_help_is_short() -> None:
    shown = {name for name, (command, _) in tree().items() if " " not in name and not command.hidden}
    assert len(shown) <= 35
    out = call(["--help"])[0].decode()
    assert all(f"\n  {name} " in out for name in shown)
    long = {path for path, (command, _) in tree().items() if command.get_short_help_str(64).endswith("...")}
    assert long == set()


def test_a_help_has_one_form_of_arguments_and_defaults() -> None:
    for path, (command, context) in tree().items():
        usage = command.get_usage(context)
        assert not re.search(r"[{}<>]|\[\[", usage), usage
        shown = " ".join(word for each in command.params for word in each.get_help_record(context) or ())
        assert not re.search(r"\(default|<\w+>|list\[", shown), path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))
    return tmp_path


def test_the_upgrade_page_has_every_removed_option() -> None:
    options = {
        (f"{path} {old}", f"{path} {new}")
        for path, names in OTHER.items()
        for old, new in names.items()
        if old[0] == "-"
    }
    listed = {(f"ppo-tui {old}", f"ppo-tui {new}") for old, new in REMOVED if " --" in old}
    assert options == listed and len(REMOVED) > len(options) + 10 and SETTINGS


@pytest.mark.parametrize(("old", "new"), REMOVED)
def test_a_removed_name_is_an_error_that_gives_the_new_one(home: Path, old: str, new: str) -> None:
    out, err, code = call(old.split())
    assert (out, code) == (b"", 2)
    assert err.decode().splitlines()[1].startswith(f"hint: did you mean '{new.split()[-1] if ' --' in old else new}'?")


@pytest.mark.parametrize(("old", "new"), SETTINGS)
def test_a_removed_setting_is_an_error_that_gives_the_new_one(home: Path, old: str, new: str) -> None:
    (home / "config.yaml").write_text(f"{old}: x\n")
    out, err, code = call(["config", "show"])
    assert (out, code) == (b"", 2) and f"hint: did you mean '{new}'?" in err.decode()


def test_nothing_shows_a_removed_name() -> None:
    words = [r" [^`'\n]*--".join(re.escape(word) for word in old.split(" --")) for old, _ in REMOVED]
    pattern = re.compile(rf"(?:ppo-tui (?:{'|'.join(words)})|`queue add|`reward test)(?![\w-])")
    pages = [page for page in ALL if page.name not in ("CHANGELOG.md", "upgrade.md")]
    code = [path for room in ("launcher", "tui", "tools", "presets") for path in (ROOT / room).rglob("*.*")]
    texts: Sequence[Path] = [*pages, *(path for path in code if path.suffix in (".py", ".toml", ".yaml"))]
    found = {str(path): pattern.findall(path.read_text("utf-8")) for path in texts}
    assert {path: shown for path, shown in found.items() if shown} == {}
