"""The supervisor as a real detached process, with the log player in veRL's place."""

import gzip
import io
import json
import os
import re
import signal
import sys
import time
from pathlib import Path

import player
import pytest
from waiting import wait_for

from launcher.cli import plain
from launcher.core import clock
from launcher.preset.translate import Launch
from launcher.record.attempt import Exit
from launcher.record.events import StateChange
from launcher.record.info import RunInfo
from launcher.record.layout import RunDir, create
from launcher.record.process import ProcessId, session_members
from launcher.record.state import current
from launcher.runs.act.stop import stop
from launcher.runs.supervise.spawn import spawn_supervisor, write_launch
from launcher.runs.watch.reader import RunReader

pytestmark = pytest.mark.slow  # each starts supervisors and drivers

LOGS = Path(__file__).parents[1] / "data" / "logs"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))


def driver_of(run: RunDir) -> ProcessId:
    found = current(run).driver
    assert found is not None
    return found


def test_a_replay_goes_through_the_states_and_ends_as_the_log_did() -> None:
    run = player.begin(LOGS / "cpu-toy.log.gz", 100)
    state = wait_for(run, lambda s: not s.live)
    assert state.state == "finished" and state.step == state.total == 80
    assert state.exit is not None and state.exit == Exit(0, None, None, state.exit.t, state.exit.machine)
    reader = RunReader(run.path)
    reader.poll()
    states = [event.what.after for event in reader.events if isinstance(event.what, StateChange)]
    assert states == ["starting", "running", "finished"]
    score = reader.series.get("critic/score/mean")
    assert score is not None and len(score) == 80
    assert session_members(driver_of(run)) == []


def test_plain_lines_tell_every_step_each_flag_and_the_end() -> None:
    out = io.StringIO()
    code = plain.follow(player.begin(LOGS / "kl-blowup.log.gz", 400, 134), out, interval=0.05)
    lines = out.getvalue().splitlines()
    assert code == 0 and lines[-1] == "stopped"
    steps = [
        found[1] for line in lines if (found := re.match(r"(step \d+)(?:/58)?(?: |$)", line))
    ]  # "step 9:" is a flag
    assert not any("MEM-" in line for line in lines), "the log's memory is not this machine's"
    assert steps == [f"step {n}" for n in range(28)]
    assert any(line.startswith("step 27/58  reward 0.147") for line in lines)
    assert any("KL-4 OK -> WARN" in line for line in lines) and "starting -> running" in lines


def test_a_failed_log_is_a_failed_run_with_its_cause() -> None:
    run = player.begin(LOGS / "fail-missing-parquet.log.gz", 1000, 1)
    state = wait_for(run, lambda s: not s.live)
    assert state.state == "failed" and state.cause == "parquet-missing" and state.error
    out = io.StringIO()
    assert plain.follow(run, out) == 1
    assert out.getvalue().splitlines()[-2:] == [
        f"failed: {state.error}",
        f"see the cause and the fixes with 'ppo-tui diagnose {run.id[:4]}'",
    ]


def test_stop_is_recorded_with_who_asked_and_is_no_failure() -> None:
    run = player.begin(LOGS / "cpu-toy.log.gz", 1)
    wait_for(run, lambda s: s.driver is not None)
    assert stop(run, by="test", wait=True) == "stopped"
    record = current(run).exit
    assert record is not None and (record.requested_by, record.code) == ("test", 143)
    assert session_members(driver_of(run)) == []


def test_a_run_whose_supervisor_was_killed_is_adopted_by_the_stop() -> None:
    run = player.begin(LOGS / "cpu-toy.log.gz", 1)
    state = wait_for(run, lambda s: s.driver is not None)
    assert state.supervisor is not None
    os.kill(state.supervisor.pid, signal.SIGKILL)
    state = wait_for(run, lambda s: s.state == "lost")
    assert state.driver_alive is True
    assert stop(run, by="test", wait=True) == "stopped"
    assert current(run).state == "stopped" and session_members(driver_of(run)) == []
    attempt = run.last_attempt()
    record = attempt.read_exit() if attempt is not None else None
    assert record is not None and record.requested_by == "test"


def test_a_supervisor_that_hangs_is_told_by_its_old_heartbeat(monkeypatch: pytest.MonkeyPatch) -> None:
    run = player.begin(LOGS / "cpu-toy.log.gz", 1)
    state = wait_for(run, lambda s: s.driver is not None)
    assert state.silent_minutes is None and state.supervisor is not None
    os.kill(state.supervisor.pid, signal.SIGSTOP)
    real = clock.beat
    monkeypatch.setattr("launcher.core.clock.beat", lambda: real() + 185)
    assert current(run).silent_minutes == 3 and current(run).state == "starting"
    monkeypatch.undo()
    os.kill(state.supervisor.pid, signal.SIGCONT)
    stop(run, wait=True)


def test_the_hang_up_of_the_terminal_changes_nothing() -> None:
    run = player.begin(LOGS / "cpu-toy.log.gz", 1)
    state = wait_for(run, lambda s: s.driver is not None)
    supervisor = state.supervisor
    assert supervisor is not None
    assert os.getsid(supervisor.pid) == supervisor.pid != os.getsid(0), "a session of its own: no terminal"
    os.kill(supervisor.pid, signal.SIGHUP)
    time.sleep(0.3)
    assert supervisor.alive() and driver_of(run).alive()
    stop(run, wait=True)


def test_a_driver_that_cannot_be_started_is_a_failed_run() -> None:
    run, now = create("x"), time.time()
    RunInfo(run.id, "x", now).write(run.run_yaml)
    launch = Launch(argv=["/nonexistent/python"], env={}, unset=[], keys={})
    write_launch(run, run.add_attempt(), launch, created=now, run_created=now)
    spawn_supervisor(run)
    state = wait_for(run, lambda s: not s.live)
    assert state.state == "failed" and state.exit is not None and state.exit.code == 127


def test_stop_on_and_on_alert_act_without_a_screen(tmp_path: Path) -> None:
    run = create("nan")
    attempt = run.add_attempt()
    heard = tmp_path / "heard.jsonl"
    listen = f"import sys; open({str(heard)!r}, 'a').write(sys.stdin.read() + chr(10))"
    health = {"stop_on": ["NUM-1"], "on_alert": [sys.executable, "-c", listen]}
    now = time.time()
    RunInfo(run.id, "nan", now, preset={"health": health}).write(run.run_yaml)
    wait = "import shutil, sys, time; shutil.copyfileobj(open(sys.argv[1], 'rb'), sys.stdout.buffer); "
    wait += "sys.stdout.flush(); time.sleep(60)"
    log = tmp_path / "nan.log"
    log.write_bytes(gzip.decompress((LOGS / "nan.log.gz").read_bytes()))
    launch = Launch(argv=[sys.executable, "-c", wait, str(log)], env={}, unset=[], keys={})
    write_launch(run, attempt, launch, created=now, run_created=now)
    spawn_supervisor(run)
    state = wait_for(run, lambda s: not s.live)
    assert state.state == "stopped" and state.exit is not None
    assert state.exit.requested_by == "stop_on: NUM-1 is CRITICAL"
    told = [json.loads(line) for line in heard.read_text().splitlines()]
    assert told[0]["run"] == run.id and {event["rule"] for event in told} >= {"NUM-1"}


def test_a_driver_that_ended_by_itself_was_not_stopped_by_what_its_last_step_showed(tmp_path: Path) -> None:
    run = create("nan")
    attempt = run.add_attempt()
    now = time.time()
    RunInfo(run.id, "nan", now, preset={"health": {"stop_on": ["NUM-1"]}}).write(run.run_yaml)
    step = "step:1 - actor/pg_loss:nan - critic/score/mean:0.5\n"
    end = f"import os; os.write(1, b{step!r}); os._exit(0)"  # no time to be looked at in between
    launch = Launch(argv=[sys.executable, "-c", end], env={}, unset=[], keys={})
    write_launch(run, attempt, launch, created=now, run_created=now)
    spawn_supervisor(run)
    state = wait_for(run, lambda s: not s.live)
    assert state.state == "finished" and state.exit is not None and state.exit.requested_by is None
    assert "NUM-1" in state.flags
