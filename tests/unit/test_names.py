"""One name per job: old names lead to the new ones until 0.4, nothing shows them, and no option has two names."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from commands import RUN, call
from doc_pages import ALL, ROOT
from page_program import root, tree
from tables import tabled
from whole_run import whole_run

from launcher.core.old_names import _note, old_names, renamed
from launcher.core.tables import read_tables
from launcher.settings import _NAMES, OUR_THEMES

MEANINGS = read_tables(ROOT / "tests/data/option_meanings.toml")
OLD = ["runs", "presets", "recipes", "hosts --json", "command toy-cpu", "queue add x"]
OLD += [f"note {RUN}", f"note {RUN} later"]


def options_of(path: str) -> set[str]:
    return {option for each in tree()[path][0].params for option in each.opts}


def test_every_old_name_leads_to_a_command_and_its_option() -> None:
    for old, new in old_names()["commands"].items():
        *path, last = new.split()
        assert old not in tree() and (new in tree() or last in options_of(" ".join(path))), old
    for path, names in old_names()["options"].items():
        assert set(names.values()) <= options_of(path) and not set(names) & options_of(path), path
    assert set(old_names()["settings"].values()) <= set(_NAMES)
    assert set(old_names()["themes"].values()) <= set(OUR_THEMES)


def test_an_option_has_one_meaning_and_a_meaning_one_option() -> None:
    everywhere = {"": root()[0]} | {path: command for path, (command, _) in tree().items()}
    for path, command in everywhere.items():
        for each in command.params:
            if each.param_type_name == "option":
                meant = {name for name, meaning in MEANINGS.items() if re.match(meaning, each.help)}
                assert meant == {next(name for name in each.opts if name.startswith("--"))}, (path, each.help)


def test_the_main_help_is_short() -> None:
    shown = {name for name, (command, _) in tree().items() if " " not in name and not command.hidden}
    assert len(shown) <= 35 and not shown & set(old_names()["commands"])
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


@tabled
def test_old_words_become_new_ones(typed: str, meant: str) -> None:
    assert renamed(typed.split()) == meant.split()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    _note.cache_clear()
    whole_run(tmp_path / "home", RUN)
    (tmp_path / "home" / "config.yaml").write_text("hosts: [away]\n")
    return tmp_path / "home"


@pytest.mark.parametrize("typed", OLD)
def test_an_old_name_prints_what_the_new_one_prints_and_names_it(home: Path, typed: str) -> None:
    words = typed.split()
    out, err, code = call(words)
    new_out, new_err, new_code = call(renamed(words))
    assert (out, code) == (new_out, new_code) and (out or code)
    note, _, rest = err.decode().partition("\n")
    assert re.fullmatch(rf"note: 'ppo-tui {words[0]}[\w ]*' is now 'ppo-tui .*'; the old name works until 0.4", note)
    assert rest == new_err.decode()


def test_an_old_option_is_named_with_the_new_one(home: Path) -> None:
    out, err, code = call(["export", RUN, "--to", "run.csv"])
    assert (out, code) == (b"run.csv\n", None)
    assert err == b"note: '--to' is now '--output'; the old name works until 0.4\n"


def test_old_settings_are_read_and_named_once(home: Path) -> None:
    (home / "config.yaml").write_text("theme: colour-blind\ncpu_runs: 3\nalerts: {phone: 'ntfy://secret/x'}\n")
    out, err, _ = call(["config", "show"])
    rows = dict(line.split(maxsplit=1) for line in out.decode().splitlines())
    assert rows["theme"].startswith("color-blind ") and rows["max_cpu_runs"].startswith("3 ")
    assert rows["alerts"].startswith("phone ") and b"secret" not in out
    for place, old, new in ((1, "colour-blind", "color-blind"), (2, "cpu_runs", "max_cpu_runs")):
        assert len(re.findall(rf"config.yaml, line {place}.*: '{old}' is now '{new}'", err.decode())) == 1, err


def test_nothing_shows_an_old_name() -> None:
    names = old_names()
    words = [rf"ppo-tui {old}" for old in names["commands"]] + ["`queue add", "`reward test"]
    words += [f"ppo-tui {path} [^`'\n]*{old}" for path, options in names["options"].items() for old in options]
    pattern = re.compile(rf"(?:{'|'.join(words)})(?![\w-])")
    pages = [page for page in ALL if page.name != "CHANGELOG.md"]
    code = [path for room in ("launcher", "tui", "tools", "presets") for path in (ROOT / room).rglob("*.*")]
    texts: Sequence[Path] = [*pages, *(path for path in code if path.suffix in (".py", ".toml", ".yaml"))]
    table = re.compile(r"<!-- begin old-names -->.*<!-- end old-names -->", re.DOTALL)
    said = {str(path): table.sub("", path.read_text("utf-8")) for path in texts if path.stem != "old_names"}
    found = {path: pattern.findall(text) for path, text in said.items()}
    assert {path: shown for path, shown in found.items() if shown} == {}
