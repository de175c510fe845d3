"""How long a run takes, as an earlier run of its preset shows."""

import dataclasses
import socket
from pathlib import Path

import pytest
from whole_run import whole_run

from launcher.preset.files import load
from launcher.record.layout import RunDir
from launcher.runs.watch.pace import pace_of


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))
    return tmp_path


def here(run: RunDir, **more: object) -> RunDir:
    """The run as one of this machine, started 20 s before its first step."""
    attempt = run.attempt(1)
    dataclasses.replace(attempt.read_launch(), host=socket.gethostname(), **more).write(attempt.launch)
    return run


def test_the_newest_run_of_a_preset_tells_its_pace(home: Path) -> None:
    toy = load("toy-cpu").snapshot()
    assert pace_of("toy-cpu", toy) is None
    run = whole_run(home)
    assert pace_of("toy-cpu", toy) is None, "it was made on another machine"
    here(run)
    pace = pace_of("toy-cpu", toy)
    assert pace is not None and pace.run == run.read_id() and pace.same
    assert pace.step == pytest.approx(2.0) and pace.whole(60) == pytest.approx(pace.startup + 120)
    assert pace_of("gsm8k-0.5b-24gb", toy) is None


def test_the_same_settings_come_first_and_steps_do_not_matter(home: Path) -> None:
    run = here(whole_run(home))
    longer = load("toy-cpu", ["trainer.steps=7"]).snapshot()
    assert (pace := pace_of("toy-cpu", longer)) is not None and pace.same
    other = load("toy-cpu", ["data.train_batch_size=128"]).snapshot()
    assert (pace := pace_of("toy-cpu", other)) is not None and not pace.same
    run.attempt(1).steps.write_bytes(b"".join(run.attempt(1).steps.read_bytes().splitlines(keepends=True)[:2]))
    assert pace_of("toy-cpu", other) is None, "two steps are no pace"


def test_a_damaged_run_has_no_pace(home: Path) -> None:
    run = here(whole_run(home))
    run.attempt(1).steps.write_bytes(b'{"step": 1\n\xff\n')
    assert pace_of("toy-cpu", load("toy-cpu").snapshot()) is None
