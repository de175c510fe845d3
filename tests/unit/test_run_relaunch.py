"""A run that was edited out of an earlier one."""

from pathlib import Path

import pytest

from launcher.preset.files import load
from launcher.record.events import Action, read_events
from launcher.record.info import Edit, Origin, RunInfo
from launcher.record.layout import create
from launcher.runs.act.start import note_origin
from launcher.runs.watch.parent import Parent


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))


def test_the_new_run_tells_which_run_it_is_from_and_what_differs() -> None:
    earlier, run = create("toy-cpu"), create("toy-cpu")
    preset = load("toy-cpu", ["env.A=b"]).snapshot()
    RunInfo(earlier.id, preset=preset, versions={"torch": "2"}).write(earlier.run_yaml)
    after = Parent(earlier).origin(load("toy-cpu", ["actor.lr=1e-4"]))
    assert after == Origin(earlier.id, (Edit("actor.lr", 3e-4, 1e-4), Edit("env.A", "b", None)))
    note_origin(run, after)
    (event,) = read_events(run.events)
    told = (f"after {earlier.id}:", "actor.lr=1e-4", "env.A=null")
    assert event.what == Action("relaunch", settings=told, after=earlier.id)
