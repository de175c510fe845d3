"""The process that judges drafts."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from launcher.check.live import replies
from launcher.preset.files import shipped


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))


@pytest.mark.slow
def test_each_request_is_answered_twice_until_the_input_ends(tmp_path: Path) -> None:
    texts = ["extends: gsm8k-0.5b-24gb\nactor:\n  lr: 1e-5\n", "actor: [", "extends: toy-cpu\n"]
    requests = b"".join(
        json.dumps({"path": str(tmp_path / "mine.yaml"), "text": text}).encode() + b"\n" for text in texts
    )
    done = subprocess.run(
        [sys.executable, "-m", "launcher.check.live"], input=requests, capture_output=True, timeout=300
    )
    first, judged, broken, refused, toy, _ = map(json.loads, done.stdout.splitlines())
    assert done.returncode == 0
    assert "actor_rollout_ref.actor.optim.lr=1e-05" in first["command"] and first["error"] is None
    assert judged["verl"][0] and judged["memory"]["phases"] and isinstance(judged["findings"], list)
    assert broken["command"] is None and "line" in broken["error"]
    assert [each["id"] for each in refused["findings"]] == ["PRESET"]
    assert "trainer.device=cpu" in toy["command"]


def test_without_a_gpu_the_one_that_is_needed_is_assumed(monkeypatch: pytest.MonkeyPatch) -> None:
    from launcher.machine import capacity

    monkeypatch.setattr(capacity, "_gpus", lambda env: ())
    path = shipped()["gsm8k-0.5b-24gb"]
    _, judged = replies(path, path.read_text())
    assert judged["machine"] == "1 x 24.0 GiB, assumed from the preset's needs"
    assert judged["memory"]["gpu_total"] / 2**30 == pytest.approx(23.65, abs=0.01)  # as torch says of it
    path = shipped()["toy-cpu"]
    _, judged = replies(path, path.read_text())
    assert judged["machine"] == "no GPU here"


def test_rows_of_the_training_file_are_counted(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"x": [1, 2, 3]}), tmp_path / "rows.parquet")
    first, _ = replies(tmp_path / "mine.yaml", "extends: toy-cpu\ndata:\n  train: rows.parquet\n")
    assert first["rows"] == 3


def test_a_mistyped_field_comes_with_the_right_name(tmp_path: Path) -> None:
    last = list(replies(tmp_path / "mine.yaml", "extends: toy-cpu\nactor: {lrr: 1}\noverrides: {trainer.stepz: 1}\n"))[
        -1
    ]
    assert [each.get("rename") for each in last["findings"]] == [("actor.lrr", "actor.lr")]
    last = list(
        replies(tmp_path / "mine.yaml", "extends: toy-cpu\noverrides: {actor_rollout_ref.actor.optim.weight_decy: 1}\n")
    )[-1]
    (found,) = [each for each in last["findings"] if each["id"] == "KEY-1"]
    name = "actor_rollout_ref.actor.optim.weight_dec"
    assert found["rename"] == (f"{name}y", f"{name}ay")
