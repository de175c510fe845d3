"""Supervisors that are killed, frozen or moved: what the next one makes of the run."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from driven import SLEEPS, driven, known, written
from stepping import go, stepping_run
from waiting import PATIENCE, wait_for, wait_until

from launcher.cli.launch import stop as stop_command
from launcher.core.files import size
from launcher.record.control import request
from launcher.record.events import LevelChange, Note, StateChange, read_events, read_kind
from launcher.record.info import RunInfo
from launcher.record.layout import RunDir, create
from launcher.record.levels import Level
from launcher.record.process import ProcessId, run_members, run_processes
from launcher.record.ray_session import RaySession
from launcher.record.state import RunState, current
from launcher.runs.act.stop import stop
from launcher.runs.supervise.spawn import adopt, kept
from launcher.runs.watch.run_diagnosis import diagnosis
from launcher.runs.watch.steps import steps

pytestmark = pytest.mark.slow  # each starts supervisors and drivers


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def run(tmp_path: Path, home: Path) -> Iterator[RunDir]:
    with stepping_run(tmp_path, "leaves") as run:
        yield run


def kill(run: RunDir) -> None:
    """Kills the supervisor, and waits until it is gone."""
    supervisor = known(current(run).supervisor)
    os.kill(supervisor.pid, signal.SIGKILL)
    wait_until(lambda: not supervisor.alive())


def ended(run: RunDir) -> RunState:
    return wait_for(run, lambda state: not state.live and state.driver_alive is None)


def told(run: RunDir) -> Counter[str]:
    return Counter(event.what.kind for event in read_events(run.events))


def test_nothing_is_missed_and_nothing_told_twice_however_often_the_supervisor_is_killed(
    run: RunDir, tmp_path: Path
) -> None:
    before, driver = told(run), known(current(run).driver)
    assert before["health"], "step 1 raises a flag"
    kill(run)
    assert current(run).state == "lost" and diagnosis(run).cause == "running"
    assert kept(run).state == "running" and known(current(run).driver).same(driver)
    wait_for(run, lambda state: bool(state.flags))
    assert told(run) - before == Counter(note=1)
    kill(run)
    (tmp_path / "go").touch()
    wait_until(lambda: b"step:5" in run.attempt(1).console.read_bytes())
    kept(run)
    wait_for(run, lambda state: state.step == 5)
    kill(run)
    (tmp_path / "end").touch()
    wait_until(lambda: not driver.alive())
    kept(run)
    state = ended(run)
    assert (state.state, state.step, state.total) == ("finished", 5, 5), state.error
    assert [record.step for _, record in steps(run)] == [1, 2, 3, 4, 5]
    times = [record.t for _, record in steps(run)]
    assert times == sorted(times) and times[0] > 1e9
    assert [change.after for change in read_kind(run.events, StateChange)] == ["starting", "running", "finished"]
    assert run_processes(run.id) == []


def test_a_new_supervisor_does_without_what_was_removed_from_the_console(tmp_path: Path, home: Path) -> None:
    (home / "config.yaml").write_text("max_console_size: 1 MiB\n")
    with stepping_run(tmp_path, "screams") as run:
        console = run.attempt(1).console
        (tmp_path / "go").touch()
        wait_for(run, lambda state: state.step == 5)
        wait_until(lambda: b"step:2" not in console.read_bytes())
        assert b"MiB of this log here" in console.read_bytes() and size(run.path) < 2 << 20
        kill(run)
        kept(run)
        with console.open("ab") as file:
            file.write(b"step:6 - critic/score/mean:0.6 - actor/entropy:0.5\n")
        wait_for(run, lambda state: state.step == 6)
        (tmp_path / "end").touch()
        assert ended(run).state == "finished"
        found = [record for _, record in steps(run)]
        assert [record.step for record in found] == [1, 2, 3, 4, 5, 6]
        assert console.read_bytes()[found[-1].log_offset :].startswith(b"step:6")
        changes = read_kind(run.events, LevelChange)
        assert [each.step for each in changes if each.after == Level.CRITICAL] == [1], "told once"


def test_of_many_that_adopt_a_run_one_wins_and_a_driver_that_vanishes_then_has_failed(run: RunDir) -> None:
    kill(run)
    lost = current(run)
    several = [threading.Thread(target=adopt, args=([(run, lost)],)) for _ in range(4)]
    for each in several:
        each.start()
    for each in several:
        each.join()
    assert current(run).state == "running" and len(read_kind(run.events, Note)) == 1
    os.kill(known(current(run).driver).pid, signal.SIGKILL)
    state = wait_for(run, lambda state: not state.live)
    found = diagnosis(run)
    assert (state.state, state.error, state.cause) == ("failed", found.title, found.cause)
    assert found.title.startswith("The driver vanished under its supervisor: probably killed (SIGKILL)")
    assert "OOM" in found.meaning, "what is recorded of the memory"


def test_a_stop_that_the_killed_supervisor_had_begun_is_carried_out(run: RunDir) -> None:
    os.kill(known(current(run).supervisor).pid, signal.SIGSTOP)
    request(run, "stop", by="somebody")
    kill(run)
    kept(run)
    state = wait_for(run, lambda state: not state.live)
    assert state.state == "stopped" and state.exit is not None and state.exit.requested_by == "somebody"


def freeze(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    """Freezes the supervisor, for whose answer a stop waits a second from then on, and for the next one long."""
    os.kill(known(current(run).supervisor).pid, signal.SIGSTOP)
    monkeypatch.setattr("launcher.runs.act.stop.HEARD", 1.0)
    monkeypatch.setattr("launcher.runs.supervise.spawn.PATIENCE", PATIENCE)


def test_a_frozen_supervisor_is_killed_by_the_stop_which_says_so(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    driver, said = known(current(run).driver), list[str]()
    freeze(run, monkeypatch)
    assert stop(run, by="test", narrate=said.append) == "stopped"
    assert "did not respond; killed it and ended the driver" in said[0]
    state = current(run)
    assert state.state == "stopped" and state.exit is not None and state.exit.requested_by == "test"
    assert list(run_members(driver, run.id)) == []


def test_the_command_ends_a_frozen_run_whose_driver_was_not_written_down_and_names_what_is_left(
    run: RunDir, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    driver = known(current(run).driver)
    freeze(run, monkeypatch)
    RunState("starting", attempt=1, supervisor=current(run).supervisor).write(run.state)
    monkeypatch.setattr("launcher.cli.launch.run_processes", lambda _: [4711])
    with pytest.raises(typer.Exit):
        stop_command(run.id, wait=True)
    said = capsys.readouterr().err
    assert f"run {run.id} is stopped\n" in said and "could not be killed: 4711" in said
    assert list(run_members(driver, run.id)) == []


def test_a_driver_that_ended_beside_a_frozen_supervisor_was_not_stopped(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stepping_run(tmp_path) as run:
        driver, said = known(current(run).driver), list[str]()
        freeze(run, monkeypatch)
        go(tmp_path)
        wait_until(lambda: not driver.alive())
        assert stop(run, by="test", wait=True, narrate=said.append) == "finished"
        assert said[0].endswith("did not respond; killed it; the driver had ended")


def test_a_frozen_supervisor_that_had_not_started_its_driver(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = written(SLEEPS)
    monkeypatch.setattr("launcher.runs.act.stop.HEARD", 1.0)
    with subprocess.Popen([sys.executable, "-c", SLEEPS]) as supervisor:
        RunState("starting", attempt=1, supervisor=ProcessId.of(supervisor.pid)).write(run.state)
        assert stop(run, by="test", wait=True) == "stopped"
        supervisor.kill()


def test_a_stop_does_not_kill_its_own_process(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("launcher.runs.act.stop.HEARD", 0.1)
    made, me = create("x"), ProcessId.of(os.getpid())
    RunInfo(made.id, "x", time.time()).write(made.run_yaml)
    RunState("running", supervisor=me, driver=me, heartbeat=time.time() - 20).write(made.state)
    assert stop(made) == "running"


@pytest.mark.nightly("launcher/machine/", "launcher/runs/")
def test_a_driver_that_was_not_written_down_is_found_and_what_it_left_is_not_taken_for_it(
    run: RunDir, tmp_path: Path
) -> None:
    driver = known(current(run).driver)
    kill(run)
    RunState("starting", attempt=1, supervisor=current(run).supervisor).write(run.state)
    kept(run)
    state = wait_for(run, lambda state: state.step == 1)
    assert known(state.driver).same(driver) and state.state == "running"
    kill(run)
    RunState("starting", attempt=1, supervisor=current(run).supervisor).write(run.state)
    go(tmp_path)
    wait_until(lambda: not driver.alive())
    assert run_processes(run.id), "its grandchild lives"
    kept(run)
    assert ended(run).state == "finished" and run_processes(run.id) == []


def test_a_run_that_never_began_has_failed(run: RunDir) -> None:
    kill(run)
    attempt = run.add_attempt()
    RunState("starting", attempt=attempt.number, supervisor=current(run).supervisor).write(run.state)
    kept(run)
    state = ended(run)
    assert state.state == "failed" and "before it started the driver" in str(state.error)


def test_a_folder_that_is_moved_takes_its_run_along(run: RunDir, tmp_path: Path) -> None:
    run.run_yaml.unlink()
    moved = RunDir(run.path.rename(tmp_path / "elsewhere"))
    (tmp_path / "go").touch()
    wait_for(moved, lambda state: state.step == 5)
    (tmp_path / "end").touch()
    assert wait_for(moved, lambda state: not state.live).state == "finished"
    assert not run.path.exists()


def test_a_run_whose_attempts_were_removed_ends_all_the_same(run: RunDir, tmp_path: Path) -> None:
    supervisor = known(current(run).supervisor)
    shutil.rmtree(run.attempts)
    go(tmp_path)
    assert wait_for(run, lambda state: not state.live).state == "finished"
    wait_until(lambda: not supervisor.alive())


def test_nvml_that_hangs_keeps_no_stop_from_being_heard(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pynvml.py").write_text("import time\ndef nvmlInit():\n    time.sleep(600)\n")
    # where PYTHONPATH has ppo-tui itself, its order holds
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(Path(__file__).parents[2])]))
    run = driven(SLEEPS)
    wait_for(run, lambda state: state.driver is not None)
    assert stop(run, wait=True) == "stopped"


@pytest.mark.nightly("launcher/machine/", "launcher/record/", "launcher/runs/")
def test_what_an_ended_run_left_is_offered_and_removed_and_nothing_else(
    run: RunDir, tmp_path: Path, ppo_tui: Callable[..., Any]
) -> None:
    assert ppo_tui("clean", "--dry-run", "--json").stdout == "", "the run goes on"
    session = tmp_path / "ray" / "session_2026-11-22_20-40-07_609238_1" / "logs"
    session.mkdir(parents=True)
    with (session / "gcs_server.out").open("w"):
        found = RaySession.of([os.getpid()])
    assert found is not None and found.path == str(session.parent)
    go(tmp_path)
    wait_for(run, lambda state: not state.live)
    orphan, foreign = (
        subprocess.Popen([sys.executable, "-c", SLEEPS], env={**os.environ, "PPO_TUI_RUN": name})
        for name in (run.id, "of-another-home")
    )
    found.write(run.attempt(1).ray)
    wait_until(lambda: run_processes(run.id) == [orphan.pid])
    offered = [json.loads(line) for line in ppo_tui("clean", "--dry-run", "--json").stdout.splitlines()]
    assert [(each["run"], each["kind"]) for each in offered] == [(run.id, "process"), (run.id, "folder")]
    assert orphan.poll() is None and found.left, "it was only asked"
    threading.Thread(target=orphan.wait, daemon=True).start()
    assert ppo_tui("clean", "--yes").returncode == 0
    assert orphan.wait() == -signal.SIGKILL and foreign.poll() is None and not found.left
    foreign.kill()
    foreign.wait()
