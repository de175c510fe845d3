"""Muting through a real supervisor: what a muted rule may no longer set off, and what outlives an attempt."""

import gzip
import json
import sys
import time
from pathlib import Path

import pytest
from waiting import wait_for

from launcher.preset.translate import Launch
from launcher.record import control
from launcher.record.events import Action, EventLog, LevelChange, read_events
from launcher.record.info import RunInfo
from launcher.record.layout import create
from launcher.record.levels import Level
from launcher.runs.act.stop import stop
from launcher.runs.supervise.spawn import spawn_supervisor, write_launch

LOGS = Path(__file__).parents[1] / "data" / "logs"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))


@pytest.mark.slow
def test_a_muted_rule_neither_stops_nor_alerts_and_can_be_taken_back(tmp_path: Path) -> None:
    run = create("nan")
    attempt = run.add_attempt()
    heard = tmp_path / "heard.jsonl"
    listen = f"import sys; open({str(heard)!r}, 'a').write(sys.stdin.read() + chr(10))"
    health = {"stop_on": ["NUM-1"], "on_alert": [sys.executable, "-c", listen]}
    now = time.time()
    RunInfo(run.id, "nan", now, preset={"health": health}).write(run.run_yaml)
    EventLog(run.events).add(Action("mute", by="screen", rule="NUM-1"))  # in an attempt before this one
    show = "import shutil, sys, time; shutil.copyfileobj(open(sys.argv[1], 'rb'), sys.stdout.buffer); "
    show += "sys.stdout.flush(); time.sleep(60)"
    log = tmp_path / "nan.log"
    log.write_bytes(gzip.decompress((LOGS / "nan.log.gz").read_bytes()))
    launch = Launch(argv=[sys.executable, "-c", show, str(log)], env={}, unset=[], keys={})
    write_launch(run, attempt, launch, created=now, run_created=now)
    spawn_supervisor(run)
    try:
        state = wait_for(run, lambda s: s.step is not None)
        assert state.muted == {"NUM-1"} and "NUM-1" not in state.flags
        (row,) = [check for check in state.checks if check.rule == "NUM-1"]
        assert row.level == Level.CRITICAL  # it is judged on, and its events are kept
        changes = [event.what for event in read_events(run.events) if isinstance(event.what, LevelChange)]
        assert "NUM-1" in {change.rule for change in changes}
        control.request(run, "mute", rule="NO-1")  # nothing of that name: the supervisor goes on
        control.request(run, "unmute", by="screen", rule="NUM-1")
        state = wait_for(run, lambda s: not s.muted)
        assert "NUM-1" in state.flags and state.state == "running"
    finally:
        stop(run, wait=True)
    told = [json.loads(line) for line in heard.read_text().splitlines()] if heard.exists() else []
    assert "NUM-1" not in {event.get("rule") for event in told}
