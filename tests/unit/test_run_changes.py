"""The settings in which a run differs from its preset, or from the other runs of it."""

from pathlib import Path

import pytest

from launcher.preset.files import load
from launcher.record.info import RunInfo
from launcher.runs.watch.run_settings import changes


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))
    return tmp_path


def toy(*settings: str, name: str = "toy-cpu") -> RunInfo:
    return RunInfo(name=name, preset=load("toy-cpu", settings).snapshot(), versions={"verl": str(len(settings))})


def keys(*infos: RunInfo) -> list[dict[str, object]]:
    return [{edit.key: (edit.before, edit.now) for edit in edits} for edits in changes(infos)]


def test_a_run_differs_from_its_preset_in_what_was_set_over_it() -> None:
    assert keys(toy()) == [{}]
    assert keys(toy("actor.lr=1e-5")) == [{"actor.lr": (0.0003, 1e-5)}]


def test_what_all_runs_of_a_preset_share_is_left_out() -> None:
    found = keys(toy("trainer.steps=5", "actor.lr=1e-5"), toy("trainer.steps=5"))
    assert found == [{"actor.lr": (0.0003, 1e-5)}, {}]


def test_runs_of_other_presets_do_not_count() -> None:
    assert keys(toy("trainer.steps=5"), toy("trainer.steps=5", name="gone")) == [{"trainer.steps": (60, 5)}, {}]


def test_without_its_preset_a_run_is_compared_with_the_oldest_one() -> None:
    assert keys(toy("actor.lr=1e-5", name="gone"), toy(name="gone")) == [{"actor.lr": (0.0003, 1e-5)}, {}]
    assert keys(RunInfo(name="toy-cpu")) == [{}]
