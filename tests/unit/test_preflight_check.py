"""`ppo-tui check` as people and scripts see it, and `run` when the preflight refuses."""

import importlib.util
import json
from pathlib import Path

import pytest
from tables import tabled

from launcher.check import gate
from launcher.check.checks import quick
from launcher.check.subject import subject
from launcher.preset.files import load

GPU = ["gsm8k-0.5b-h800", "--assume", "1x80"]
PRESET = """
model: {path: /nonexistent/model, use_remove_padding: false}
data: {train: /nonexistent/train.parquet, val: /nonexistent/test.parquet, train_batch_size: 64}
actor: {strategy: fsdp2, ppo_mini_batch_size: 48, ppo_micro_batch_size_per_gpu: 32}
critic: {ppo_micro_batch_size_per_gpu: 32}
rollout: {engine: hf, log_prob_micro_batch_size_per_gpu: 32}
trainer: {device: cpu, epochs: 1}
cluster: {cpus: 16}
"""


def test_json_is_what_the_readme_says(in_process):
    done = in_process("check", *GPU, "actor.ppo_micro_batch_size_per_gpu=24", "--json")
    report = json.loads(done.stdout)
    assert done.returncode == 1 and report["ok"] is False
    (found,) = [each for each in report["findings"] if each["id"] == "P10"]
    assert found == {
        "id": "P10",
        "group": "config",
        "level": "error",
        "keys": found["keys"],
        "message": "mini-batch 32 is not divisible by micro-batch 24",
        "fix": "set actor.ppo_micro_batch_size_per_gpu=16 or 32",
        "change": {"actor.ppo_micro_batch_size_per_gpu": 16},
        "fixes": [
            {
                "changes": [{"key": "actor.ppo_micro_batch_size_per_gpu", "operation": "set", "values": [16, 32]}],
                "key": "actor.ppo_micro_batch_size_per_gpu",
                "text": "set actor.ppo_micro_batch_size_per_gpu=16 or 32",
            }
        ],
    }
    assert "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu" in found["keys"]
    assert {"model", "gpu_total", "phases", "host", "formula"} <= report["memory"].keys()
    assert "model" in done.stderr, "its progress"


def test_text_is_grouped_and_says_what_to_do(in_process):
    done = in_process("check", *GPU, "actor.ppo_micro_batch_size_per_gpu=24")
    lines = done.stdout.splitlines()
    assert lines[0] == "CONFIG"
    assert lines[1] == "  error P10: mini-batch 32 is not divisible by micro-batch 24"
    assert lines[2] == "    fix: set actor.ppo_micro_batch_size_per_gpu=16 or 32"
    assert any(line.startswith("MEMORY in GiB") for line in lines)
    assert lines[-1].endswith("the run would fail")


@tabled
def test_a_preset_that_is_refused_is_a_finding(in_process, tmp_path, text, words, keys, part):
    """Unless a setting mends the file."""
    (tmp_path / "mine.yaml").write_text(text)
    done = in_process("check", *words, "--json")
    report = json.loads(done.stdout)
    if part is None:
        assert "PRESET" not in [each["id"] for each in report["findings"]]
        return
    assert done.returncode == 1 and report["ok"] is False
    (found,) = report["findings"]
    assert (found["id"], found["level"], found["keys"]) == ("PRESET", "error", keys)
    assert part in found["message"] + found["fix"]


def test_a_run_that_would_fail_is_refused_with_sentences_and_leaves_nothing(in_process, tmp_path: Path):
    (tmp_path / "mine.yaml").write_text(PRESET)
    done = in_process("run", "./mine.yaml", "--detach")
    assert done.returncode == 1 and done.stdout == ""
    assert "P10" in done.stderr and "set actor.ppo_micro_batch_size_per_gpu=24 or 48" in done.stderr
    assert done.stderr.splitlines()[-1].endswith("use --force to start it anyway")
    assert list((tmp_path / "home").glob("runs/*")) == []


def test_a_start_prints_the_warnings_of_its_preflight(monkeypatch: pytest.MonkeyPatch):
    """Those that `check` prints: of a start that is not refused, nobody else would."""
    loaded = load("toy-cpu", ["actor.lr=0.5", "kl.coef=50", "kl.in_reward=true", "trainer.validate_every=-1"])
    findings = quick(subject(loaded))
    monkeypatch.setattr(gate, "slow", lambda *_, **__: [])
    said: list[str] = []
    kept = gate.admit(loaded, force=True, narrate=said.append, prepare=lambda: None).findings
    wanted = [each for each in findings if each.level != "info"]
    assert len(wanted) >= 2 and len(kept) == len(wanted) < len(findings) + 1
    assert {each.id for each in wanted} == {line.split()[1].rstrip(":") for line in said}
    for each in wanted:
        assert f"{each.level} {each.id}: {each.message}; {each.fix}" in said


def test_a_check_ahead_is_old_once_a_file_changed_but_not_a_folder(tmp_path: Path) -> None:
    (file := tmp_path / "rows.parquet").touch()
    (folder := tmp_path / "folder").mkdir()
    what = subject(load("toy-cpu", [f"data.train={file}", f"data.val={folder}"]))
    before = gate.stamps(what)
    (folder / "more").touch()
    assert gate.stamps(what) == before
    file.write_text("more")
    assert gate.stamps(what) != before


@pytest.mark.e2e
@pytest.mark.skipif(importlib.util.find_spec("verl") is None, reason="needs veRL: pip install ppo-tui[cpu]")
def test_a_forced_run_remembers_what_had_been_found(ppo_tui, tmp_path: Path):
    (tmp_path / "mine.yaml").write_text(PRESET + "overrides: {actor_rollout_ref.actor.foo: 1}\n")
    done = ppo_tui("run", "./mine.yaml", "--detach", "--force", "--json")
    assert done.returncode == 0, done.stderr
    folder = Path(json.loads(done.stdout)["dir"])
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    (forced,) = [event for event in events if event.get("verb") == "force"]
    assert {"KEY-1", "P10", "P28"} <= {finding["id"] for finding in forced["findings"]}
    assert "forced: true" in (folder / "run.yaml").read_text()
    ppo_tui("stop", "last", "--wait")
