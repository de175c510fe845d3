"""Sweeps: what they put in the queue, and how their runs are compared."""

import json
from pathlib import Path

import pytest
from tables import tabled

from launcher.cli import queueing as commands
from launcher.compare.comparison import Compared, tagged
from launcher.compare.contrast import arm_rows
from launcher.core.errors import UserError
from launcher.preset.files import load
from launcher.record import queued
from launcher.record.info import Preflight, RunInfo
from launcher.record.note import RunNote, read_note
from launcher.record.state import RunState
from launcher.runs.act import queue_runner as going
from launcher.runs.act.queue_runner import arms, sweep
from launcher.runs.act.start import Plan
from launcher.runs.watch.turns import Turn


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))
    monkeypatch.setattr(going, "wake_queue", lambda: None)  # nothing starts


def test_every_combination_has_its_seeds() -> None:
    found = arms("toy-cpu", ["actor.lr=1e-6,3e-6", "kl.coef=0.001", "health.notify=[bell, toast]"], seeds=2)
    assert [[each for each in run if "lr" in each or "seed" in each] for run in found] == [
        ["actor.lr=1e-6", "data.seed=1"],
        ["actor.lr=1e-6", "data.seed=2"],
        ["actor.lr=3e-6", "data.seed=1"],
        ["actor.lr=3e-6", "data.seed=2"],
    ]
    assert all("health.notify=[bell, toast]" in run for run in found)
    assert load("toy-cpu", found[0]).preset.health["stop_on"] == ["NUM-1", "ERR-1", "KL-1", "SIG-1", "REW-1"]
    ours = arms("toy-cpu", ["health.stop_on=[KL-1]"])
    assert load("toy-cpu", ours[0]).preset.health["stop_on"] == ["KL-1"]


@tabled
def test_a_wrong_sweep_is_refused_whole(changes: list[str], words: str) -> None:
    with pytest.raises(UserError, match=words):
        arms("toy-cpu", changes)


def test_its_runs_have_a_tag_and_are_compared_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = sweep("toy-cpu", arms("toy-cpu", ["actor.lr=1e-6,3e-6"], seeds=2), "lr-1")
    assert [entry.id for entry in queued.entries()] == [entry.id for entry in entries] and len(entries) == 4

    def started(plan: Plan, *_: object, id: str, **__: object) -> None:
        entry = next(entry for entry in entries if entry.id == id)
        entry.run.path.mkdir(parents=True)
        RunInfo(entry.id, "toy-cpu", preset=entry.preset).write(entry.run.run_yaml)
        RunState("finished", created=entry.added).write(entry.run.state)
        RunNote.parse(plan.note).write(entry.run.note)

    monkeypatch.setattr(going, "start", started)
    monkeypatch.setattr(going, "admit_waiting", lambda *_, **__: Preflight())
    for entry in entries:
        going._start(Turn(entry))
    runs = tagged("lr-1")
    assert read_note(runs[0].note).tags == ("lr-1",)
    assert [run.id for run in runs] == [entry.id for entry in entries] and not queued.entries()
    rows = arm_rows([Compared(run) for run in runs])
    assert [(row[0], row[1], row[-1]) for row in rows[1:]] == [
        ("1", "2 finished", "actor.lr=1e-6"),
        ("2", "2 finished", "actor.lr=3e-6"),
    ]
    with pytest.raises(UserError, match="tag #other: 0 runs"):
        tagged("#other")


def test_a_dry_run_prints_and_queues_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    commands.sweep("toy-cpu", ["actor.lr=1e-6,3e-6"], tag="#a", dry_run=True, json=True)
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["run"] for row in rows] == [None, None] and rows[0]["tag"] == "a" and not queued.entries()
    with pytest.raises(UserError, match="not a tag"):
        sweep("toy-cpu", [[]], "a b")


def test_a_preset_names_its_values_and_the_command_wins(tmp_path: Path) -> None:
    preset = tmp_path / "mine.yaml"
    preset.write_text("extends: toy-cpu\nsweep:\n  actor.lr: [1e-6, 3e-6]\n  kl: {loss_coef: [0.001, 0.01]}\n")
    found = [[each for each in run if "health" not in each] for run in arms(str(preset))]
    assert found[1] == ["actor.lr=1e-06", "kl.loss_coef=0.01"] and len(found) == 4
    found = [[each for each in run if "health" not in each] for run in arms(str(preset), ["actor.lr=2e-6"])]
    assert found == [["actor.lr=2e-6", "kl.loss_coef=0.001"], ["actor.lr=2e-6", "kl.loss_coef=0.01"]]
    assert load(str(preset), ["actor.lr=2e-6"]).preset.actor.lr == 2e-6, "others pass over it"
    for wrong, words in (
        ("actor.lr: [1e-6, 1e-6]", "twice"),
        ("actor.lr: []", "empty"),
        ("actor.lrr: [1]", "the 'sweep:' block of preset .*mine.yaml: unknown key 'actor.lrr'; .*actor.lr"),
    ):
        preset.write_text(f"extends: toy-cpu\nsweep: {{{wrong}}}\n")
        with pytest.raises(UserError, match=words):
            arms(str(preset))
