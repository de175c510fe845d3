"""A run that was edited out of an earlier one."""

from pathlib import Path

import pytest

from launcher.preset.files import load
from launcher.record.events import read_events
from launcher.record.layout import create
from launcher.run.actions.relaunch import note_origin, origin


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))


def test_the_new_run_tells_which_run_it_is_from_and_what_differs() -> None:
    earlier, run = create("toy-cpu"), create("toy-cpu")
    earlier.write_info(
        {"id": earlier.id, "preset": load("toy-cpu", ["env.A=b"]).snapshot(), "versions": {"torch": "2"}}
    )
    after = origin(earlier, load("toy-cpu", ["actor.lr=1e-4"]).snapshot())
    assert after == {
        "run": earlier.id,
        "diff": [{"key": "actor.lr", "before": 3e-4, "now": 1e-4}, {"key": "env.A", "before": "b", "now": None}],
    }
    note_origin(run, after)
    (event,) = read_events(run.events)
    assert event["verb"] == "relaunch" and event["after"] == earlier.id
    assert event["settings"] == [f"after {earlier.id}:", "actor.lr=1e-4", "env.A=null"]
