"""`keep:` in config.yaml: what goes, what stays, and nothing without being asked for."""

import json
from pathlib import Path

import orjson
import pytest
from commands import call
from whole_run import whole_run

from launcher.record.layout import RunDir, all_runs
from launcher.record.note import RunNote


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


@pytest.mark.parametrize(
    ("text", "said"),
    [("many", "use a text such as"), ("''", "use a text such as"), ("5 GB of checkpoints", "use a text such as")],
)
def test_wrong_limits_are_a_sentence_and_remove_nothing(
    runs: list[RunDir], tmp_path: Path, text: str, said: str
) -> None:
    keep(tmp_path, text)
    _, err, code = call(["clean", "--yes"])
    assert code == 2 and said in err.decode() and len(all_runs()) == len(runs)


def test_nothing_is_cleaned_unasked(runs: list[RunDir], tmp_path: Path) -> None:
    call(["clean", "--yes"])  # no limits are set
    assert len(all_runs()) == len(runs)
    keep(tmp_path, "1 run")
    assert call(["clean"])[2] == 2  # no terminal that could ask
    assert len(all_runs()) == len(runs)
