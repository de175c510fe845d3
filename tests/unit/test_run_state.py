"""What a reader makes of state.json when nobody keeps it up any more."""

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from commands import call

from launcher.record.attempt import Exit
from launcher.record.info import RunInfo
from launcher.record.layout import RunDir, create
from launcher.record.process import ProcessId, session_members
from launcher.record.state import RunState, StateFile, current
from launcher.runs.act.stop import stop

ME = ProcessId.of(os.getpid())
assert ME is not None
GONE = replace(ME, ticks=1)


@pytest.fixture
def run(home: Path) -> RunDir:
    run = create("x")
    RunInfo(run.id, "x").write(run.run_yaml)
    run.add_attempt()
    return run


def written(run: RunDir, supervisor: ProcessId, age: float = 0.0) -> RunState:
    """What a reader makes of a running state whose last heartbeat was so many seconds ago."""
    now = time.time()
    RunState("running", attempt=1, supervisor=supervisor, updated=now, heartbeat=now - age).write(run.state)
    return current(run)


def test_a_supervisor_on_another_machine_is_known_by_its_heartbeat(run: RunDir) -> None:
    elsewhere = replace(GONE, boot="another machine")
    assert written(run, elsewhere).state == "running"
    assert written(run, elsewhere, age=20).state == "running"
    assert written(run, elsewhere, age=300).state == "lost"
    assert written(run, GONE).state == "lost"


@pytest.mark.slow
def test_a_lost_run_may_have_left_workers_of_its_driver(run: RunDir) -> None:
    code = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'input()'])"
    stdin, keeps = os.pipe()
    driver = subprocess.Popen([sys.executable, "-c", code], start_new_session=True, stdin=stdin)
    started = ProcessId.of(driver.pid)
    assert started is not None and driver.wait() == 0
    StateFile(run).write(RunState("running", attempt=1, supervisor=GONE, driver=started))
    assert current(run).state == "lost" and current(run).driver_alive
    os.close(stdin)
    assert stop(run, by="test") == "stopped" and session_members(started) == []
    os.close(keeps)


def test_a_run_without_a_state_is_lost_and_says_why(run: RunDir) -> None:
    state = current(run)
    assert state.state == "lost" and state.error is not None and "state.json is damaged" in state.error


def test_a_status_that_is_old_says_so_and_a_run_that_ended_before_it_could_be_judged_was_too_short(run: RunDir) -> None:
    assert ME is not None
    written(run, ME, age=300)
    assert b"no update from the supervisor for 5 min" in call(["status", run.id])[0]
    for state, verdict in (("running", b"warming up"), ("stopped", b"too short")):
        RunState(state, verdict="WARM", step=5, updated=time.time()).write(run.state)
        said = [call(words)[0] for words in (["list"], ["status", run.id])]
        assert all(verdict in text for text in said), said
        assert b'"verdict":"WARM"' in call(["status", run.id, "--json"])[0]


@pytest.mark.parametrize(
    ("record", "state"), [(Exit(0), "finished"), (Exit(143, "SIGTERM", "user"), "stopped"), (Exit(1), "failed")]
)
def test_an_exit_record_tells_the_end_also_when_its_writer_was_killed_next(
    run: RunDir, record: Exit, state: str
) -> None:
    assert written(run, GONE).state == "lost"
    record.write(run.attempt(1).exit)
    assert (current(run).state, current(run).exit) == (state, record)
