"""`keep:` in config.yaml: what goes, what stays, and nothing without being asked for."""

import contextlib
import json
import os
import shutil
from pathlib import Path

import orjson
import pytest
from commands import call
from tables import tabled
from whole_run import whole_run

from launcher.core.files import discard
from launcher.record.control import alone
from launcher.record.layout import RunDir, all_runs
from launcher.record.note import RunNote
from launcher.record.process import ProcessId
from launcher.record.state import RunState
from launcher.runs.act.removal import excess, remove
from launcher.runs.watch.checkpoints import checkpoints
from launcher.settings import Keep


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[RunDir]:
    """Four runs without notes, newest first, each with checkpoints of 1 MiB at steps 5 and 10."""
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))
    for number in range(4):
        run = whole_run(tmp_path, f"{number:06x}", "toy")
        run.note.unlink()
        run.state.write_bytes(orjson.dumps(orjson.loads(run.state.read_bytes()) | {"created": 1000.0 + number}))
        for step in (5, 10):
            folder = run.checkpoints / f"global_step_{step}" / "actor"
            folder.mkdir(parents=True)
            (folder / "model").write_bytes(bytes(1 << 20))
        (run.checkpoints / "latest_checkpointed_iteration.txt").write_text("10")
    return all_runs()


def keep(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.yaml").write_text(f"keep: {text}\n")


def planned(*more: str) -> list[str]:
    out, err, code = call(["clean", "--json", *more])
    assert code in (None, 0), err
    return [json.loads(line)["name"] for line in out.splitlines()]


def test_a_dry_run_removes_nothing(runs: list[RunDir], tmp_path: Path) -> None:
    keep(tmp_path, "2 runs")
    assert planned("--dry-run") == [str(runs[3].path), str(runs[2].path)]
    assert len(all_runs()) == 4


def test_the_oldest_runs_go_but_those_with_a_note_or_damage(runs: list[RunDir], tmp_path: Path) -> None:
    keep(tmp_path, "1 run")
    RunNote("the baseline").write(runs[3].note)
    runs[2].attempt(1).exit.write_text("{")
    planned("--yes")
    assert [run.id for run in all_runs()] == [runs[0].id, runs[2].id, runs[3].id]


def test_the_oldest_checkpoints_go_but_the_newest_of_each_run(runs: list[RunDir], tmp_path: Path) -> None:
    keep(tmp_path, "6.5 MiB of checkpoints")
    assert planned("--yes") == [str(run.checkpoints / "global_step_5") for run in (runs[3], runs[2])]
    keep(tmp_path, "3 runs, 1 MiB of checkpoints")
    planned("--yes")
    assert [sorted(path.name for path in run.checkpoints.glob("global*")) for run in all_runs()] == [
        ["global_step_10"]
    ] * 3


@tabled
def test_wrong_limits_are_a_sentence_and_remove_nothing(runs, tmp_path, text, said):
    keep(tmp_path, text)
    _, err, code = call(["clean", "--yes"])
    assert code == 2 and said in err.decode() and len(all_runs()) == len(runs)


@pytest.mark.parametrize("change", ["resumed", "noted", "locked", "rolled back", "damaged"])
def test_what_changed_while_the_question_was_open_stays(runs: list[RunDir], change: str) -> None:
    run, others = runs[3], runs[:3]
    found = excess(Keep(None, 4 << 20))
    assert [each.what for each in found if each.run.id == run.id] == [run.checkpoints / "global_step_5"]
    if change == "resumed":
        RunState("running", created=1000.0, supervisor=ProcessId.of(os.getpid())).write(run.state)
    elif change == "noted":
        RunNote("the baseline").write(run.note)
    elif change == "rolled back":
        (run.checkpoints / "latest_checkpointed_iteration.txt").write_text("5")
    elif change == "damaged":
        run.attempt(1).exit.write_text("{")
    with alone(run) if change == "locked" else contextlib.nullcontext():
        stay = remove(found)
    assert [each.run.id for each in stay] == [run.id] and (run.checkpoints / "global_step_5" / "actor").is_dir()
    assert not any((each.checkpoints / "global_step_5").exists() for each in others)


def test_json_says_what_was_removed(runs: list[RunDir], tmp_path: Path) -> None:
    keep(tmp_path, "2 runs")
    out, err, code = call(["clean", "--json"])  # no terminal that could ask
    assert code == 2 and not out and str(runs[3].path) in err.decode()
    with alone(runs[3]):
        out, err, code = call(["clean", "--json", "--yes"])
    removed = {(line := json.loads(row))["run"]: line["removed"] for row in out.splitlines()}
    assert removed == {runs[3].id: False, runs[2].id: True} and code == 1
    assert "by another process" in err.decode() and "removed 1 of 2" in err.decode()
    assert [run.id for run in all_runs()] == [runs[0].id, runs[1].id, runs[3].id]


def test_a_checkpoint_that_is_half_removed_is_none(runs: list[RunDir], monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(folder: Path, **_: object) -> None:
        if (folder / "actor" / "model").exists():
            (folder / "actor" / "model").unlink()
            raise KeyboardInterrupt

    with monkeypatch.context() as disk, pytest.raises(KeyboardInterrupt):
        disk.setattr(shutil, "rmtree", killed)
        remove(excess(Keep(None, 7 << 20)))
    assert [*checkpoints(runs[3])] == [10] and [*runs[3].checkpoints.glob(".deleted-*")]
    discard(runs[3].checkpoints / "global_step_10")
    assert not [*runs[3].checkpoints.glob(".deleted-*")], "the next one removes what a killed one left"


def test_nothing_is_cleaned_unasked(runs: list[RunDir], tmp_path: Path) -> None:
    call(["clean", "--yes"])  # no limits are set
    assert len(all_runs()) == len(runs)
    keep(tmp_path, "1 run")
    assert call(["clean"])[2] == 2  # no terminal that could ask
    assert len(all_runs()) == len(runs)
