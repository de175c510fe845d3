"""The queue with real processes: starters, supervisors, and drivers in veRL's place."""

import dataclasses
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from driven import SLEEPS, driven, written
from waiting import wait_for, wait_until

from launcher.record import queued
from launcher.record.layout import all_runs, find
from launcher.record.process import ProcessId
from launcher.record.queued import Checked, Queued
from launcher.record.state import RunState, current
from launcher.runs.act import queue_runner as going
from launcher.runs.act.queue_check import Checkers
from launcher.runs.act.stop import stop
from launcher.runs.supervise.spawn import IN_TIME, detached
from launcher.runs.watch.turns import Seen, look, turns

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("home")]  # each starts supervisors and drivers

# In the place of `start`, which requires veRL: a driver that waits to be told to end. In the place of the preflight one
# that waits for a file, refuses or is killed, as the entry's description says.
STARTER = """
import subprocess, sys, time
from launcher.preset.translate import Launch
from launcher.record.info import Preflight, RunInfo
from launcher.record.layout import appearing, new_id
from launcher.runs.act import queue_check, queue_runner
from launcher.runs.supervise.spawn import spawn_supervisor, write_launch

home, check = sys.argv[1:]

def start(plan, narrate, *, id, preflight):
    open(home + "/started", "a").write(id + "\\n")
    with appearing(plan.loaded.name, id) as (run, hidden):
        # a stop looks for its processes by this id, and other tests start runs of the same names at the same time
        RunInfo(new_id(id), plan.name or plan.loaded.name, time.time()).write(hidden.run_yaml)
        launch = Launch([sys.executable, "-S", "-c", "import time; time.sleep(900)"], {}, [], {"trainer.device": "cpu"})
        write_launch(hidden, hidden.add_attempt(), launch, created=time.time(), run_created=time.time(), cwd=run.path)
    spawn_supervisor(run)

queue_runner.start = start
queue_runner.admit_waiting = lambda loaded, ahead, *, force: Preflight()
queue_check.detached = lambda words, log, cwd: subprocess.Popen(
    [sys.executable, "-c", check, words[1], home], stdout=log.open("ab"), stderr=subprocess.STDOUT)
queue_runner.go_on()
"""
CHECK = """
import os, pathlib, signal, sys, time
from launcher.core.errors import UserError
from launcher.record.queued import Checked
from launcher.runs.act import queue_check

home = pathlib.Path(sys.argv[2])

def check(entry):
    with (home / "checks").open("a") as file:
        file.write(f"{entry.id} {os.getpid()}\\n")
    word = entry.preset["description"]
    while word == "slow" and not (home / "release").exists():
        time.sleep(0.02)
    if word == "refused":
        raise UserError("no such model")
    if word == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    return Checked()

queue_check.check = check
queue_check.wake_queue = lambda: None
queue_check.main()
"""


def enqueue(id: str, word: str = "x", **preset: object) -> Queued:
    entry = Queued(id, id, {"description": word, **preset}, socket.gethostname(), 0, queued.new_place(), time.time())
    entry.save()
    return entry


def starter(home: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", STARTER, str(home), CHECK])


def started(home: Path) -> list[str]:
    return (home / "started").read_text().split() if (home / "started").exists() else []


@pytest.fixture
def ends() -> Iterator[None]:
    """Stops what the test has started."""
    yield
    for each in queued.entries():
        each.remove()
    for run in all_runs():
        stop(run, wait=True)


def test_five_that_look_at_once_start_each_run_once(home: Path, ends: None) -> None:
    (home / "config.yaml").write_text("max_cpu_runs: 4\n")
    ids = [enqueue(f"{n}-x").id for n in range(5)]
    for each in [starter(home) for _ in range(5)]:
        assert each.wait() == 0
    states = {run.id: (current(run).state, current(run).error) for run in all_runs()}
    assert sorted(started(home)) == sorted(states) and len(states) == 4, states
    (left,) = queued.entries()
    assert {left.id, *started(home)} == {*ids} and all(current(run).going for run in all_runs())


def test_a_named_entry_becomes_a_run_of_that_name(home: Path, ends: None) -> None:
    dataclasses.replace(enqueue("1-x"), name="base", preset_name="x").save()
    assert starter(home).wait() == 0
    wait_until(lambda: len(all_runs()) == 1, queued.entries)
    assert find("base").id == "1-x"


def test_no_entry_waits_for_the_check_of_another(home: Path, ends: None) -> None:
    """On two H100 a GPU waited 63 s while the entries before were checked one by one, and refused."""
    (home / "config.yaml").write_text("max_cpu_runs: 2\n")
    enqueue("0-slow", "slow")
    refused = [enqueue(f"{n}-refused", "refused").id for n in range(1, 4)]
    enqueue("4-x")
    process = starter(home)
    wait_until(lambda: started(home) == ["4-x"], lambda: [queued.entries(), started(home)])
    first = queued.find("0-slow")
    assert queued.checked("0-slow").running and first.skipped is None, "its check is still under way"
    wait_until(lambda: [queued.find(id).skipped for id in refused] == ["no such model"] * 3, queued.entries)
    (home / "release").touch()
    wait_until(lambda: started(home) == ["4-x", "0-slow"], queued.entries)
    assert process.wait() == 0 and [each.id for each in queued.entries()] == refused


@pytest.mark.nightly("launcher/record/", "launcher/runs/", every=2)
@pytest.mark.parametrize("both", [False, True], ids=["starter", "starter-and-checks"])
def test_a_kill_during_checks_loses_no_entry(home: Path, ends: None, both: bool) -> None:
    (home / "config.yaml").write_text("max_cpu_runs: 3\n")
    ids = [enqueue(f"{n}-slow", "slow").id for n in range(3)]
    process = starter(home)
    checks = home / "checks"
    wait_until(lambda: checks.exists() and len(checks.read_text().splitlines()) == 2, queued.entries)
    process.kill()
    process.wait()
    for line in checks.read_text().splitlines() if both else ():
        os.kill(int(line.split()[1]), signal.SIGKILL)
    entries = queued.entries()
    assert [(each.id, each.skipped, each.waits) for each in entries] == [(id, None, True) for id in ids]
    (home / "release").touch()
    assert starter(home).wait() == 0
    assert sorted(started(home)) == ids and not queued.entries()


def test_a_check_that_dies_is_made_again_and_then_refuses(home: Path, ends: None) -> None:
    enqueue("0-dies", "dies")
    enqueue("1-x")
    assert starter(home).wait() == 0
    (left,) = queued.entries()
    assert started(home) == ["1-x"] and [line.split()[0] for line in (home / "checks").open()].count("0-dies") == 3
    assert str(left.skipped).startswith("its preflight ended 3 times without a result; see ")
    assert turns()[0].state == "refused"


def test_checks_are_made_while_the_machine_is_used_and_the_end_of_a_run_starts_the_next(ends: None) -> None:
    run = driven(SLEEPS, keys={"trainer.device": "cpu"})
    wait_for(run, lambda state: state.driver is not None)
    enqueue("1-x", trainer={"gpus": "many"})
    enqueue("2-x", nothing=1)
    going.go_on()
    wait_until(lambda: all(each.skipped for each in queued.entries()), queued.entries)
    first, second = (str(each.skipped) for each in queued.entries())
    assert "trainer.gpus" in first and "nothing" in second
    third = enqueue("3-x", nothing=1)
    Checked(ended=time.time()).save(third.id)
    going.go_on()
    assert not queued.find("3-x").skipped, "it is checked, and the CPU is used"
    stop(run, wait=True)
    wait_until(lambda: "nothing" in str(queued.find("3-x").skipped), queued.entries)  # the supervisor woke the queue
    assert not [each for each in all_runs() if each.id != run.id]


def test_a_slow_process_gives_no_slot_that_another_one_gave_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    for id in ("0-x", "1-x"):
        enqueue(id)
        Checked(ended=1.0).save(id)
    started: list[str] = []

    def slow(before: Seen | None = None) -> Seen:
        seen = look(before)
        if before is None:
            assert queued.decide(queued.find("1-x"), starter=ProcessId.of(os.getpid()))
        return seen

    monkeypatch.setattr(going, "look", slow)
    monkeypatch.setattr(going, "_start", lambda turn: started.append(turn.entry.id))
    with ThreadPoolExecutor(1) as starters:
        going._Work(Checkers(), starters).step()
    assert not started and not queued.find("0-x").starting


def test_a_supervisor_that_comes_too_late_starts_nothing() -> None:
    run = written("")
    RunState("queued", attempt=1, updated=time.time() - IN_TIME - 1).write(run.state)
    assert current(run).going, "for a while nobody takes the slot"
    assert detached(["launcher.runs.supervise", str(run.path)], run.supervisor_log, run.path).wait() == 0
    assert not run.attempt(1).console.exists() and current(run).supervisor is None


@pytest.mark.nightly("launcher/record/", "launcher/runs/")
def test_two_starters_of_which_one_is_killed_give_no_slot_twice() -> None:
    root = Path(__file__).parents[2]
    words = [sys.executable, str(root / "campaigns" / "queue_rounds.py"), "4"]
    done = subprocess.run(words, env={**os.environ, "PYTHONPATH": str(root)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
