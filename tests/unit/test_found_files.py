"""Files that are found, not named, are obeyed only if nobody else may write them."""

import ast
import importlib.util
import os
import pwd
import sys
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from commands import call

from launcher import settings
from launcher.check import data, facts, worker
from launcher.check.hardware import of_machine
from launcher.cli.parsing import WRITING, examples
from launcher.core import paths
from launcher.core.errors import UserError
from launcher.core.files import foreign, make_folder, write_atomic
from launcher.data import toy
from launcher.machine.capacity import here
from launcher.metrics.names import pinned, toggle
from launcher.preset import library
from launcher.preset.draft import Draft
from launcher.preset.drafts import keep_unsaved, open_draft, restore_unsaved
from launcher.preset.files import load, load_text, summary
from launcher.record import queued
from launcher.record.note import last_look
from launcher.record.queued import Queued
from launcher.verl import defaults

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


def draft(text: str) -> Draft:
    made = Draft(Path("/x/mine.yaml"), "", on_disk=None)
    made.replace(text)
    return made


def ask(function: Callable[..., object], *words: object) -> Callable[[], bool]:
    """Whether an answer is what another user may have written into the cache."""
    return lambda: "theirs" in repr(function(*words))


SUBJECT = SimpleNamespace(get=lambda _, other=None: other, below=lambda _: {}, static=False, python="")
VERL = Path(importlib.util.find_spec("verl").submodule_search_locations[0])  # type: ignore[union-attr,index]
KINDS: list[tuple[str, str | Callable[[], object], Callable[[], object]]] = [  # what obeys a file returns a true value
    ("queue/0-x.json", lambda: queued.append(Queued("0-x", "x", {}, "", 0, 0.0, 1.0)), queued.entries),
    ("queue/checks/0-x.json", '{"refused": "x"}', lambda: queued.checked("0-x").refused),
    ("queue/.paused", lambda: queued.pause(on=True), queued.paused),
    ("config.yaml", "max_cpu_runs: 2", settings.max_cpu_runs),
    ("config.yaml", "mouse: true", lambda: settings.keep_theme("dark") is None),
    ("presets/mine.yaml", "extends: toy-cpu", lambda: load("mine")),
    ("presets/mine.yaml", "extends: toy-cpu", lambda: load_text(Path("/x/y.yaml"), "extends: mine")),
    ("presets/mine.yaml", "extends: toy-cpu", lambda: open_draft("mine")),
    ("presets/mine.yaml", "extends: toy-cpu", lambda: library.copy("mine", "my")),
    ("presets/mine.yaml", "extends: toy-cpu", lambda: library.rename("mine", "my")),
    ("presets/recipes/r.yaml", "description: x", lambda: load("toy-cpu", ["recipe=r"])),
    ("layout.json", '{"pins": ["a"]}', lambda: pinned() or not toggle("b")),
    ("cache/drafts/*.json", lambda: keep_unsaved(draft("a: 2")), lambda: restore_unsaved(draft("a: 1"))),
    ("cache/seen/x.json", '{"t": 1}', lambda: last_look("x")),
    ("cache/toy/recipe", toy.RECIPE, lambda: toy._recipe(paths.cache_dir() / "toy")),
    ("cache/verl-config/*.json", '{"theirs": 1}', ask(defaults.composed.__wrapped__, "1", VERL)),
    ("cache/verl-facts/*.json", '{"names": {"theirs": []}}', ask(facts.read.__wrapped__, "1", VERL)),
    ("cache/preflight/*.json", '{"failed": "theirs"}', ask(data.look, SUBJECT, "x.parquet")),
]


@pytest.mark.nightly("launcher/core/", "launcher/preset/", "launcher/record/", "launcher/settings.py", every=5)
@pytest.mark.parametrize("place", ["file", "folder"])
@pytest.mark.parametrize("by", ["nobody", "owner", "mode"])
@pytest.mark.parametrize("kind", KINDS, ids=[f"{number}-{kind[0]}" for number, kind in enumerate(KINDS)])
def test_a_file_of_the_home_that_others_may_write_is_not_obeyed(
    home: Path, kind: tuple[Any, ...], by: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "ask", lambda *_, **__: {"rows": 1})
    pattern, content, obeys = kind
    if not isinstance(content, str):
        content()
    elif "*" in pattern:
        obeys()  # which makes the file
    else:
        make_folder((home / pattern).parent)
        (home / pattern).touch(0o600)
    (file,) = home.glob(pattern)
    if isinstance(content, str):
        file.write_text(content)
    written, changed = file.read_bytes(), file if place == "file" else file.parent
    if by == "owner":
        if os.getuid():
            pytest.skip("only root gives files to another user")
        os.chown(changed, OTHER, OTHER)
    elif by == "mode":
        changed.chmod(0o777)
    mode = f"mode {changed.stat().st_mode & 0o7777:04o}"
    try:
        assert bool(obeys()) == (by == "nobody")
        refused = queued.refused()
    except UserError as error:
        refused = [error]
    if by != "nobody" and (
        not pattern.startswith("cache/") or "drafts" in pattern
    ):  # what is in the cache is made again
        command = f"sudo chown {os.getuid()} '{changed}'" if by == "owner" else f"-w '{changed}'"
        assert all(words in str(refused[0]) for words in (f"{file} is not used", mode, command))
        assert file.read_bytes() == written


def test_a_preset_named_by_its_path_is_used_and_a_listed_one_has_its_refusal(home: Path) -> None:
    make_folder(home / "presets")
    (home / "presets" / "mine.yaml").write_text("extends: toy-cpu")
    (home / "presets").chmod(0o777)
    assert load(str(home / "presets" / "mine.yaml")).preset.extends == "toy-cpu"
    assert "mine.yaml is not used" in str(summary("mine").error)


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
        write_atomic(home / "a" / "file", b"")
        queued.pause(on=True)
    finally:
        os.umask(before)
    assert [(home / each).stat().st_mode & 0o777 for each in ("a", "a/b", "a/b/c")] == [0o700] * 3
    assert foreign(home / "a" / "file") is None and queued.paused(), "nor are files that we write for others to write"
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
