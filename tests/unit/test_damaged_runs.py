"""Damaged files of a run: the run says which, and hides no other; runs of a later version are only shown."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from commands import OF_RUNS, OTHER, RUN, call
from damage import damage
from whole_run import files, whole_run

from launcher.core.errors import UserError
from launcher.record.control import request
from launcher.record.layout import RunDir
from launcher.record.state import current
from launcher.runs.act.removal import delete
from launcher.runs.act.stop import stop


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDir:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    whole_run(tmp_path, "0ld111", "older")
    return whole_run(tmp_path)


def edit(path: Path, **values: Any) -> None:
    path.write_bytes(orjson.dumps(orjson.loads(path.read_bytes()) | values))


def test_a_sound_run_is_not_damaged(run: RunDir) -> None:
    assert current(run).damaged == () and current(run).later is None
    assert "damaged" not in json.loads(call(["status", RUN, "--json"])[0])


DAMAGE: list[tuple[Callable[[RunDir], None], str]] = [
    (lambda run: edit(run.state, step="7"), "state.json: step"),
    (lambda run: edit(run.state, checks=[{"rule": "KL-1", "level": "LOUD"}]), "state.json: checks.level"),
    (lambda run: edit(run.state, exit={"code": "x"}), "state.json: exit.code"),
    (lambda run: run.state.write_text("{"), "state.json"),
    (lambda run: edit(run.note, tags=7), "note.json: tags"),
    (lambda run: run.attempt(1).exit.write_text("[]"), "exit.json: not a JSON object"),
    (lambda run: edit(run.attempt(1).launch, argv="x"), "launch.json: argv"),
    (lambda run: run.run_yaml.write_text("name: x\ncreated: [1]\n"), "run.yaml: created"),
    (lambda run: run.run_yaml.write_bytes(b"\xff"), "run.yaml: not YAML"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("harm", "said"), DAMAGE, ids=[said for _, said in DAMAGE])
def test_damage_is_told_by_file_and_field(run: RunDir, harm: Callable[[RunDir], None], said: str) -> None:
    harm(run)
    assert said in current(run).damaged
    out = call(["status", RUN])[0].decode()
    assert f"damaged  {said}\n" in out
    listed = call(["list"])[0].decode().splitlines()
    assert any(OTHER in line and "damaged" not in line for line in listed)
    if said not in ("run.yaml: created", "state.json: checks.level"):  # a list reads neither settings nor checks
        assert any(RUN in line and "damaged" in line for line in listed)


@pytest.mark.slow
def test_no_damage_is_a_traceback_or_hides_a_run(run: RunDir) -> None:
    """A few edits of the thousand that `make fuzz` makes."""
    for number in range(12):
        random_ = random.Random(number)
        path = random_.choice(files(run))
        whole, said = path.read_bytes(), damage(path, random_)
        for words in random_.sample(OF_RUNS, 6):
            call(words)  # raises what would be a traceback
        listed = call(["list"])[0].decode()
        assert RUN in listed and OTHER in listed, (path, said)
        path.write_bytes(whole)


@pytest.mark.parametrize("file", ["state.json", "run.yaml", "attempts/1/launch.json"])
def test_a_run_of_a_later_version_is_shown_and_never_changed(run: RunDir, file: str) -> None:
    path = run.path / file
    path.write_bytes(path.read_bytes().replace(b'"schema":1', b'"schema":2').replace(b"schema: 1", b"schema: 2"))
    before = {path: path.read_bytes() for path in files(run)}
    for change in (lambda: delete(run), lambda: stop(run), lambda: request(run, "mute", rule="KL-1")):
        with pytest.raises(UserError, match=r"newer ppo-tui \(schema 2, this one supports 1\); update ppo-tui"):
            change()
    for words in (["delete", RUN, "--yes"], ["status", "--note", RUN, "text"], ["resume", RUN], ["stop", RUN]):
        call(words)
    assert {path: path.read_bytes() for path in files(run)} == before
    if file == "state.json":
        assert "this ppo-tui can only show it" in call(["status", RUN])[0].decode()
    assert call(["metrics", RUN])[0] and RUN in call(["list"])[0].decode()
