"""What a reader makes of state.json when nobody keeps it up any more."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from launcher.files import write_json
from launcher.record.process import ProcessId, session_members
from launcher.record.layout import RunDir, create
from launcher.record.state import StateFile, current
from launcher.run.actions.start import stop

ME = ProcessId.of(os.getpid())
assert ME is not None
GONE = {**ME.to_json(), "ticks": 1}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunDir]:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))
    run = create("x")
    run.add_attempt()
    yield run


def told(run: RunDir, supervisor: dict[str, Any], age: float = 0.0) -> dict[str, Any]:
    StateFile(run).write({"state": "running", "attempt": 1, "supervisor": supervisor, "driver": None})
    if age:
        write_json(run.state, {**run.read_state(), "heartbeat": time.time() - age})
    return current(run)


def test_a_supervisor_on_another_machine_is_known_by_its_heartbeat(run: RunDir) -> None:
    elsewhere = {**GONE, "boot": "another machine"}
    assert told(run, elsewhere)["state"] == "running"
    assert told(run, elsewhere, age=20)["state"] == "running"
    assert told(run, elsewhere, age=300)["state"] == "lost"
    assert told(run, GONE)["state"] == "lost"


def test_a_lost_run_may_have_left_workers_of_its_driver(run: RunDir) -> None:
    code = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'input()'])"
    stdin, keeps = os.pipe()
    driver = subprocess.Popen([sys.executable, "-c", code], start_new_session=True, stdin=stdin)
    started = ProcessId.of(driver.pid)
    assert started is not None and driver.wait() == 0
    StateFile(run).write(
        {"state": "running", "attempt": 1, "supervisor": GONE, "driver": started.to_json(), "phase": None}
    )
    assert current(run)["state"] == "lost" and current(run)["driver_alive"]
    os.close(stdin)
    assert stop(run, by="test") == "stopped" and session_members(started) == []
    os.close(keeps)


def test_a_run_without_a_state_is_lost_and_says_why(run: RunDir) -> None:
    assert current(run)["state"] == "lost" and "removed" in current(run)["error"]


def test_a_status_that_is_old_says_so(run: RunDir, ppo_tui: Callable[..., Any], tmp_path: Path) -> None:
    run.write_info({"id": run.id, "name": "x"})
    told(run, ME.to_json() if ME else {}, age=300)
    said = ppo_tui("status", run.id, PPO_TUI_HOME=str(tmp_path)).stdout
    assert "written nothing for 5 min" in said


def test_a_run_that_ended_before_it_could_be_judged_was_too_short(
    run: RunDir, ppo_tui: Callable[..., Any], tmp_path: Path
) -> None:
    run.write_info({"id": run.id, "name": "x"})
    for state, verdict in (("running", "WARM"), ("stopped", "TOO SHORT")):
        write_json(run.state, {"state": state, "verdict": "WARM", "step": 5, "updated": time.time()})
        said = [ppo_tui(*words, PPO_TUI_HOME=str(tmp_path)).stdout for words in (("runs",), ("status", run.id))]
        assert all(verdict in text for text in said), said
        assert '"verdict":"WARM"' in ppo_tui("status", run.id, "--json", PPO_TUI_HOME=str(tmp_path)).stdout


@pytest.mark.parametrize(
    ("record", "state"),
    [
        ({"code": 0, "requested_by": None}, "finished"),
        ({"code": 143, "requested_by": "user"}, "stopped"),
        ({"code": 1, "requested_by": None}, "failed"),
    ],
)
def test_an_exit_record_tells_the_end_also_when_its_writer_was_killed_next(
    run: RunDir, record: dict[str, Any], state: str
) -> None:
    assert told(run, GONE)["state"] == "lost"
    write_json(run.attempt(1).exit, record)
    assert current(run)["state"] == state and current(run)["exit"] == record
