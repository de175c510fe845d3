"""The queue with real processes: starters, supervisors, and drivers in veRL's place."""

import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from waiting import wait_for, wait_until

from launcher.preset.translate import Launch
from launcher.record import queued
from launcher.record.info import RunInfo
from launcher.record.layout import all_runs, create
from launcher.record.queued import Queued
from launcher.record.state import current
from launcher.runs.act import queue_runner as going
from launcher.runs.act.stop import stop
from launcher.runs.supervise.spawn import spawn_supervisor, write_launch

pytestmark = pytest.mark.slow  # each starts supervisors and drivers

# In the place of `start`, whose preflight requires veRL: a driver that waits to be told to end.
STARTER = """
import sys, time
from launcher.preset.translate import Launch
from launcher.record.info import RunInfo
from launcher.record.layout import appearing
from launcher.runs.act import queue_runner
from launcher.runs.supervise.spawn import spawn_supervisor, write_launch

def start(loaded, settings, narrate, *, force, id, after, resume_from):
    open(sys.argv[1], "a").write(id + "\\n")
    with appearing(loaded.name, id) as (run, hidden):
        RunInfo(run.id, loaded.name, time.time()).write(hidden.run_yaml)
        launch = Launch([sys.executable, "-S", "-c", "import time; time.sleep(900)"], {}, [], {"trainer.device": "cpu"})
        write_launch(hidden, hidden.add_attempt(), launch, created=time.time(), run_created=time.time(), cwd=run.path)
    spawn_supervisor(run)

queue_runner.start = start
queue_runner.go_on()
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))
    return tmp_path


def enqueue(id: str, **preset: object) -> Queued:
    entry = Queued(id, id, {"description": "x", **preset}, socket.gethostname(), 0, queued.new_place(), time.time())
    entry.save()
    return entry


def test_five_that_look_at_once_start_each_run_once(home: Path) -> None:
    (home / "config.yaml").write_text("cpu_runs: 4\n")
    ids = [enqueue(f"{n}-x").id for n in range(5)]
    started = home / "started"
    for each in [subprocess.Popen([sys.executable, "-c", STARTER, str(started)]) for _ in range(5)]:
        assert each.wait() == 0
    try:
        assert started.read_text().split() == ids[:4]
        assert sorted(run.id for run in all_runs()) == ids[:4] and [each.id for each in queued.entries()] == ids[4:]
        assert all(current(run).going for run in all_runs())
        queued.find("4-x").remove()
    finally:
        for run in all_runs():
            stop(run, wait=True)


def test_the_end_of_a_run_starts_the_next_and_what_cannot_be_started_is_passed_over() -> None:
    run, now = create("x"), time.time()
    RunInfo(run.id, "x", now).write(run.run_yaml)
    driver = [sys.executable, "-S", "-c", "import time; time.sleep(900)"]
    launch = Launch(driver, env={}, unset=[], keys={"trainer.device": "cpu"})
    write_launch(run, run.add_attempt(), launch, created=now, run_created=now)
    spawn_supervisor(run)
    wait_for(run, lambda state: state.driver is not None)
    enqueue("1-x", trainer={"gpus": "many"})
    enqueue("2-x", nothing=1)
    going.go_on()  # the CPU is used
    assert [each.skipped for each in queued.entries()] == [None, None]
    stop(run, wait=True)
    wait_until(lambda: all(each.skipped for each in queued.entries()), queued.entries)
    first, second = (str(each.skipped) for each in queued.entries())
    assert "trainer.gpus" in first and "nothing" in second
    assert not [each for each in all_runs() if each.id != run.id]
