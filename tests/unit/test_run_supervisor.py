"""The supervisor as a real detached process, with a player of logs in veRL's place."""

import io
import json
import os
import re
import signal
import threading
from pathlib import Path

import pytest
from driven import SHOWS, SLEEPS, driven, known, listener, plain, written
from waiting import PATIENCE, wait_for, wait_until

from launcher.cli import plain as lines_of
from launcher.core import clock
from launcher.record import control
from launcher.record.attempt import Exit
from launcher.record.events import Action, EventLog, LevelChange, StateChange, read_kind
from launcher.record.layout import RunDir
from launcher.record.levels import Level
from launcher.record.process import session_members
from launcher.record.state import current
from launcher.runs.act.stop import stop
from launcher.runs.supervise.spawn import spawn_supervisor
from launcher.runs.watch.reader import RunReader

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("home")]  # each starts supervisors and drivers
LOGS = Path(__file__).parents[1] / "data" / "logs"
PLAYS = """
import gzip, sys, time
for line in gzip.open(sys.argv[1]):
    sys.stdout.buffer.write(line)
    time.sleep(0.01 * (b"step:" in line))
sys.exit(int(sys.argv[2]))
"""


def played(name: str, code: int = 0) -> RunDir:
    return driven(PLAYS, str(LOGS / f"{name}.log.gz"), str(code), replay_of=name)


def test_a_replay_goes_through_the_states_and_ends_as_the_log_did() -> None:
    run = played("cpu-toy")
    state = wait_for(run, lambda s: not s.live)
    assert state.state == "finished" and state.step == state.total == 80
    assert state.exit is not None and state.exit == Exit(0, None, None, state.exit.t, state.exit.machine)
    reader = RunReader(run.path)
    reader.poll()
    assert [change.after for change in read_kind(run.events, StateChange)] == ["starting", "running", "finished"]
    score = reader.series.get("critic/score/mean")
    assert score is not None and len(score) == 80 and session_members(known(state.driver)) == []


def test_plain_lines_tell_every_step_each_flag_and_the_end() -> None:
    out = io.StringIO()
    run = played("kl-blowup", 134)
    code = lines_of.follow(run, out, interval=0.05)
    lines = out.getvalue().splitlines()
    assert code == 0 and lines[-1] == "stopped"
    steps = [
        found[1] for line in lines if (found := re.match(r"step (\d+)(?:/58)?(?: |$)", line))
    ]  # "step 9:" is a flag
    assert steps == [str(n) for n in range(28)]
    assert not any("MEM-" in line for line in lines), "the log's memory is not this machine's"
    assert any("KL-4 OK -> WARN" in line for line in lines) and "starting -> running" in lines
    again = io.StringIO()  # the number of all steps is recorded by now
    assert lines_of.follow(run, again) == 0 and "\nstep 27/58  reward 0.147" in again.getvalue()


def test_a_failed_log_is_a_failed_run_with_its_cause() -> None:
    run = played("fail-missing-parquet", 1)
    state = wait_for(run, lambda s: not s.live)
    assert state.state == "failed" and state.cause == "parquet-missing" and state.error
    out = io.StringIO()
    assert lines_of.follow(run, out) == 1
    failed, hint = out.getvalue().splitlines()[-2:]
    assert failed == f"failed: {state.error}" and f"'ppo-tui diagnose {run.id[:4]}'" in hint


def test_a_supervisor_outlives_the_terminal_is_seen_to_hang_and_is_replaced_when_it_dies_beside_a_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = driven(SLEEPS)
    state = wait_for(run, lambda s: s.driver is not None)
    supervisor, driver = known(state.supervisor), known(state.driver)
    assert os.getsid(supervisor.pid) == supervisor.pid != os.getsid(0), "a session of its own: no terminal"
    beat = state.heartbeat or 0.0
    os.kill(supervisor.pid, signal.SIGHUP)
    wait_until(lambda: (current(run).heartbeat or 0.0) > beat)
    assert supervisor.alive() and driver.alive() and current(run).silent_minutes is None
    os.kill(supervisor.pid, signal.SIGSTOP)
    real = clock.beat
    with monkeypatch.context() as later:
        later.setattr("launcher.core.clock.beat", lambda: real() + 185)
        assert current(run).silent_minutes == 3 and current(run).live
    said = list[str]()
    asking = threading.Thread(target=lambda: said.append(stop(run, by="test", wait=True)))
    asking.start()
    wait_until(lambda: any(run.control.iterdir()))
    os.kill(supervisor.pid, signal.SIGKILL)
    asking.join(PATIENCE)
    assert said == ["stopped"]
    record = run.attempt(1).read_exit()
    assert current(run).state == "stopped" and session_members(driver) == []
    assert record is not None and record.requested_by == "test"


def test_a_driver_that_cannot_be_started_is_a_failed_run() -> None:
    state = wait_for(driven("", python="/nonexistent/python"), lambda s: not s.live)
    assert state.state == "failed" and state.exit is not None and state.exit.code == 127


def test_stop_on_and_on_alert_act_without_a_screen(home: Path) -> None:
    health = {"stop_on": ["NUM-1"], "on_alert": listener(home / "heard.jsonl")}
    run = driven(SHOWS, plain(LOGS / "nan.log.gz", home), preset={"health": health})
    state = wait_for(run, lambda s: not s.live)
    assert state.state == "stopped" and state.exit is not None
    assert state.exit.requested_by == "stop_on: NUM-1 is CRITICAL"
    told = [json.loads(line) for line in (home / "heard.jsonl").read_text().splitlines()]
    assert told[0]["run"] == run.id and "NUM-1" in {event["rule"] for event in told}


def test_a_muted_rule_neither_stops_nor_alerts_and_can_be_taken_back(home: Path) -> None:
    health, heard = {"stop_on": ["NUM-1"], "on_alert": listener(home / "heard.jsonl")}, home / "heard.jsonl"
    run = written(SHOWS, plain(LOGS / "nan.log.gz", home), preset={"health": health})
    EventLog(run.events).add(Action("mute", by="screen", rule="NUM-1"))  # in an attempt before this one
    spawn_supervisor(run)
    try:
        state = wait_for(run, lambda s: s.step is not None)
        assert state.muted == {"NUM-1"} and "NUM-1" not in state.flags
        (row,) = [check for check in state.checks if check.rule == "NUM-1"]
        assert row.level == Level.CRITICAL  # it is judged on, and its events are kept
        assert "NUM-1" in {change.rule for change in read_kind(run.events, LevelChange)}
        control.request(run, "mute", rule="NO-1")  # nothing of that name: the supervisor goes on
        control.request(run, "unmute", by="screen", rule="NUM-1")
        state = wait_for(run, lambda s: not s.muted)
        assert "NUM-1" in state.flags and state.state == "running"
    finally:
        stop(run, by="test", wait=True)
    record = current(run).exit
    assert record is not None and (record.requested_by, record.code) == ("test", 143)
    told = [json.loads(line) for line in heard.read_text().splitlines()] if heard.exists() else []
    assert "NUM-1" not in {event.get("rule") for event in told}


def test_a_driver_that_ended_by_itself_was_not_stopped_by_what_its_last_step_showed() -> None:
    step = "step:1 - actor/pg_loss:nan - critic/score/mean:0.5\n"
    end = f"import os; os.write(1, b{step!r}); os._exit(0)"  # no time to be looked at in between
    state = wait_for(driven(end, preset={"health": {"stop_on": ["NUM-1"]}}), lambda s: not s.live)
    assert state.state == "finished" and state.exit is not None and state.exit.requested_by is None
    assert "NUM-1" in state.flags
