"""Files that are found, not named, are obeyed only if nobody else may write them."""

import ast
import os
import pwd
import sys
import time
from itertools import product
from pathlib import Path

import pytest
from commands import call

from launcher import settings
from launcher.check.hardware import of_machine
from launcher.cli.parsing import WRITING, examples
from launcher.core import paths
from launcher.core.errors import UserError
from launcher.core.files import foreign, make_folder
from launcher.machine.capacity import here
from launcher.preset.files import load, summary
from launcher.record import queued
from launcher.record.queued import Queued

ROOT = Path(__file__).parents[2]
OTHER, MODES = 12_345, (0o600, 0o644, 0o664, 0o666)
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root gives files to another user")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))
    return tmp_path


@needs_root
@pytest.mark.parametrize("of_file", [True, False], ids=["file", "folder"])
def test_every_owner_group_and_mode(home: Path, of_file: bool) -> None:
    folder = home / "x"
    folder.mkdir(mode=0o700)
    (file := folder / "a.yaml").touch(mode=0o600)
    for uid, gid, mode in product((0, OTHER), (os.getgid(), OTHER), MODES):
        place = file if of_file else folder
        os.chown(place, uid, gid)
        place.chmod(mode | (0 if of_file else 0o100))
        wrong, writers = foreign(file), mode & (0o002 if gid == os.getgid() else 0o022)
        assert (wrong is None) is (uid == 0 and not writers), (uid, gid, oct(mode))
        assert wrong is None or (str(place) in str(wrong) and f"{mode | (0 if of_file else 0o100):04o}" in str(wrong))


@needs_root
@pytest.mark.parametrize("folder", [False, True], ids=["file", "folder"])
def test_an_entry_of_another_user_does_not_start_and_the_commands_name_it(home: Path, folder: bool) -> None:
    queued.append(Queued("0-x", "0-x", {"python": "/evil"}, os.uname().nodename, 0, 0.0, time.time()))
    file = paths.queue_dir() / "0-x.json"
    os.chown(paths.queue_dir() if folder else file, OTHER, OTHER)
    assert queued.entries() == [] and queued.get("0-x") is None
    for words in (["list"], ["queue"]):
        said = "".join(map(str, call(words)))
        assert f"{file} is not used" in said and "sudo chown 0" in said


@needs_root
def test_settings_and_presets_of_others_are_refused_and_a_named_file_is_not(home: Path) -> None:
    (home / "presets").mkdir(mode=0o700)
    for file, text in (
        (home / "config.yaml", "max_cpu_runs: 2\n"),
        (home / "presets" / "mine.yaml", "extends: toy-cpu\n"),
    ):
        file.write_text(text)
        os.chown(file, OTHER, OTHER)
    with pytest.raises(UserError, match=r"config.yaml is not used: it is a file of user 12345 with mode 0644"):
        settings.max_cpu_runs()
    with pytest.raises(UserError, match=r"mine.yaml is not used"):
        load("mine")
    assert "is not used" in str(summary("mine").error)
    assert load(str(home / "presets" / "mine.yaml")).preset.extends == "toy-cpu"


def test_commands_that_write_warn_of_folders_that_others_may_write_and_doctor_names_each(home: Path) -> None:
    commands = [words.split() for rows in examples().values() for words in rows]
    written = {f"{group} {name}" for group, names in WRITING.items() for name in names.split()}
    assert written < {" ".join(["ppo-tui", *words]) for words in commands}
    for words in commands:  # an unknown option keeps each from its work
        assert b"warning" not in call([*words, "--none"])[1]
    (home / "queue").mkdir(mode=0o700)
    for name, mode in (("cache", 0o777), ("queue/checks", 0o702)):
        (home / name).mkdir()
        (home / name).chmod(mode)
    first = f"warning: {home / 'cache'}: a folder of {pwd.getpwuid(os.getuid()).pw_name} with mode 0777 that other"
    for words in commands:
        said = call([*words, "--none"])[1].decode()
        assert said.count("warning: ") == said.count(first) == (" ".join(["ppo-tui", *words]) in written), words
    assert "warning: " not in call(["run", "--help"])[1].decode()
    found = {each.message.split()[0]: each.fix for each in of_machine(here(), sys.executable) if each.id == "HW-11"}
    assert list(found) == [str(home / "cache"), str(home / "queue" / "checks")]
    assert "chmod o-w" in found[str(home / "cache")] or "chmod go-w" in found[str(home / "cache")]
    assert (home / "cache").stat().st_mode & 0o777 == 0o777, "it is not changed"


def test_every_folder_that_we_make_is_for_its_owner_only(home: Path) -> None:
    before = os.umask(0)
    try:
        make_folder(home / "a" / "b" / "c")
    finally:
        os.umask(before)
    assert [(home / each).stat().st_mode & 0o777 for each in ("a", "a/b", "a/b/c")] == [0o700] * 3
    (home / "a").chmod(0o755)
    make_folder(home / "a" / "d")
    assert (home / "a").stat().st_mode & 0o777 == 0o755, "one that exists stays as it is"


def test_folders_are_made_in_one_place() -> None:
    """Those that must be new, in folders that exist, are made with mode 0700; `inside` runs in veRL's interpreter."""
    files = [path for room in ("launcher", "tui") for path in (ROOT / room).rglob("*.py") if "inside" not in path.parts]
    calls = [
        (path.name, {word.arg: ast.unparse(word.value) for word in call.keywords})
        for path in files
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call) and getattr(call.func, "attr", "") in ("mkdir", "makedirs")
    ]
    assert calls
    for name, words in calls:
        assert words == {"mode": "448"} or (name == "files.py" and words.get("mode") == "448"), (name, words)
