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
from stepping import stepping, stepping_run
from waiting import wait_for, wait_until

from launcher.cli.launch import stop as stop_command
from launcher.core.files import size
from launcher.preset.translate import Launch
from launcher.record.control import request
from launcher.record.events import LevelChange, Note, StateChange, read_events
from launcher.record.info import RunInfo
from launcher.record.layout import RunDir, create
from launcher.record.levels import Level
from launcher.record.process import ProcessId, run_members, run_processes
from launcher.record.ray_session import RaySession
from launcher.record.state import RunState, current
from launcher.runs.act.stop import stop
from launcher.runs.supervise.spawn import adopt, kept, spawn_supervisor, write_launch
from launcher.runs.watch.run_diagnosis import diagnosis
from launcher.runs.watch.steps import steps

pytestmark = pytest.mark.slow  # each starts supervisors and drivers


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunDir]:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path / "home"))
    with stepping_run(tmp_path, "leaves") as run:
        yield run


def known(found: ProcessId | None) -> ProcessId:
    assert found is not None
    return found


def kill(run: RunDir) -> None:
    """Kills the supervisor, and waits until it is gone."""
    supervisor = known(current(run).supervisor)
    os.kill(supervisor.pid, signal.SIGKILL)
    wait_until(lambda: not supervisor.alive())


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
    state = wait_for(run, lambda state: not state.live and state.driver_alive is None)
    assert (state.state, state.step, state.total) == ("finished", 5, 5), state.error
    assert [record.step for _, record in steps(run)] == [1, 2, 3, 4, 5]
    times = [record.t for _, record in steps(run)]
    assert times == sorted(times) and times[0] > 1e9
    states = [event.what.after for event in read_events(run.events) if isinstance(event.what, StateChange)]
    assert states == ["starting", "running", "finished"]
    assert run_processes(run.id) == []


def test_a_new_supervisor_does_without_what_was_removed_from_the_console(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.yaml").write_text("max_console_size: 1 MiB\n")
    monkeypatch.setenv("PPO_TUI_HOME", str(home))
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
        assert wait_for(run, lambda state: not state.live).state == "finished"
        found = [record for _, record in steps(run)]
        assert [record.step for record in found] == [1, 2, 3, 4, 5, 6]
        assert console.read_bytes()[found[-1].log_offset :].startswith(b"step:6")
        changes = [event.what for event in read_events(run.events) if isinstance(event.what, LevelChange)]
        assert [each.step for each in changes if each.after == Level.CRITICAL] == [1], "told once"


def test_of_many_that_adopt_a_run_one_wins(run: RunDir) -> None:
    kill(run)
    lost = current(run)
    several = [threading.Thread(target=adopt, args=([(run, lost)],)) for _ in range(4)]
    for each in several:
        each.start()
    for each in several:
        each.join()
    assert current(run).state == "running"
    assert [e for e in read_events(run.events) if isinstance(e.what, Note)][1:] == []


def test_a_driver_that_vanishes_while_the_next_supervisor_watches_has_failed(run: RunDir) -> None:
    kill(run)
    kept(run)
    os.kill(known(current(run).driver).pid, signal.SIGKILL)
    state = wait_for(run, lambda state: not state.live)
    found = diagnosis(run)
    assert (state.state, state.error, state.cause) == ("failed", found.title, found.cause)
    assert found.title.startswith("The driver vanished while its supervisor watched: probably killed (SIGKILL)")
    assert "OOM" in found.meaning, "what is recorded of the memory"


def test_a_stop_that_the_killed_supervisor_had_begun_is_carried_out(run: RunDir) -> None:
    supervisor = known(current(run).supervisor)
    os.kill(supervisor.pid, signal.SIGSTOP)
    request(run, "stop", by="somebody")
    kill(run)
    kept(run)
    state = wait_for(run, lambda state: not state.live)
    assert state.state == "stopped" and state.exit is not None and state.exit.requested_by == "somebody"


def freeze(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    """Freezes the supervisor, for whose answer a stop waits a second from then on."""
    os.kill(known(current(run).supervisor).pid, signal.SIGSTOP)
    monkeypatch.setattr("launcher.runs.act.stop.HEARD", 1.0)


@pytest.mark.parametrize("wait", [False, True])
def test_a_frozen_supervisor_is_killed_by_the_stop_which_says_so(
    run: RunDir, monkeypatch: pytest.MonkeyPatch, wait: bool
) -> None:
    driver = known(current(run).driver)
    freeze(run, monkeypatch)
    said: list[str] = []
    assert stop(run, by="test", wait=wait, narrate=said.append) == "stopped"
    assert "did not respond; killed it and ended the driver" in said[0]
    state = current(run)
    assert state.state == "stopped" and state.exit is not None and state.exit.requested_by == "test"
    assert list(run_members(driver, run.id)) == []


def test_the_command_tells_the_end_of_a_run_with_a_frozen_supervisor(
    run: RunDir, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    freeze(run, monkeypatch)
    stop_command(run.id, wait=True)
    assert capsys.readouterr().err.endswith(f"run {run.id} is stopped\n")


def test_a_driver_that_ended_beside_a_frozen_supervisor_was_not_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path / "home"))
    with stepping_run(tmp_path) as run:
        driver = known(current(run).driver)
        freeze(run, monkeypatch)
        (tmp_path / "go").touch()
        (tmp_path / "end").touch()
        wait_until(lambda: not driver.alive())
        said: list[str] = []
        assert stop(run, by="test", wait=True, narrate=said.append) == "finished"
        assert said[0].endswith("did not respond; killed it; the driver had ended")


def test_a_frozen_supervisor_that_had_not_written_its_driver_down(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = known(current(run).driver)
    freeze(run, monkeypatch)
    RunState("starting", attempt=1, supervisor=current(run).supervisor).write(run.state)
    assert stop(run, by="test", wait=True) == "stopped"
    assert list(run_members(driver, run.id)) == []


def test_a_frozen_supervisor_that_had_not_started_its_driver(
    tmp_path: Path, run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop(run, wait=True)
    supervisor = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        write_launch(run, run.add_attempt(), stepping(tmp_path), created=time.time(), run_created=time.time())
        RunState("starting", attempt=2, supervisor=ProcessId.of(supervisor.pid)).write(run.state)
        monkeypatch.setattr("launcher.runs.act.stop.HEARD", 1.0)
        assert stop(run, by="test", wait=True) == "stopped"
    finally:
        supervisor.kill()
        supervisor.wait()


def test_a_stop_does_not_kill_its_own_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))
    monkeypatch.setattr("launcher.runs.act.stop.HEARD", 0.1)
    made, me = create("x"), ProcessId.of(os.getpid())
    RunInfo(made.id, "x", time.time()).write(made.run_yaml)
    RunState("running", supervisor=me, driver=me, heartbeat=time.time() - 20).write(made.state)
    assert stop(made) == "running"


def test_a_process_that_outlives_the_stop_is_told(
    run: RunDir, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("launcher.cli.launch.run_processes", lambda _: [4711])
    with pytest.raises(typer.Exit):
        stop_command(run.id, wait=True)
    assert "could not be ended: 4711" in capsys.readouterr().err


def test_a_driver_whose_supervisor_was_killed_before_it_was_written_down_is_found(run: RunDir) -> None:
    driver = known(current(run).driver)
    kill(run)
    RunState("starting", attempt=1, supervisor=current(run).supervisor).write(run.state)
    kept(run)
    state = wait_for(run, lambda state: state.step == 1)
    assert known(state.driver).same(driver) and state.state == "running"


def test_what_a_driver_left_is_not_taken_for_the_driver(run: RunDir, tmp_path: Path) -> None:
    driver = known(current(run).driver)
    kill(run)
    RunState("starting", attempt=1, supervisor=current(run).supervisor).write(run.state)
    (tmp_path / "go").touch()
    (tmp_path / "end").touch()
    wait_until(lambda: not driver.alive())
    assert run_processes(run.id), "its grandchild lives"
    kept(run)
    assert wait_for(run, lambda state: not state.live and state.driver_alive is None).state == "finished"
    assert run_processes(run.id) == []


def test_a_run_that_never_began_has_failed(run: RunDir) -> None:
    kill(run)
    attempt = run.add_attempt()
    RunState("starting", attempt=attempt.number, supervisor=current(run).supervisor).write(run.state)
    kept(run)
    state = wait_for(run, lambda state: not state.live and state.driver_alive is None)
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
    for name in ("go", "end"):
        (tmp_path / name).touch()
    assert wait_for(run, lambda state: not state.live).state == "finished"
    wait_until(lambda: not supervisor.alive())


def test_nvml_that_hangs_keeps_no_stop_from_being_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pynvml.py").write_text("import time\ndef nvmlInit():\n    time.sleep(600)\n")
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path / "home"))
    # where PYTHONPATH has ppo-tui itself, its order holds
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(Path(__file__).parents[2])]))
    run, now = create("x"), time.time()
    RunInfo(run.id, "x", now).write(run.run_yaml)
    write_launch(
        run, run.add_attempt(), Launch(argv=["sleep", "600"], env={}, unset=[], keys={}), created=now, run_created=now
    )
    spawn_supervisor(run)
    wait_for(run, lambda state: state.driver is not None)
    assert stop(run, wait=True) == "stopped"


def test_what_an_ended_run_left_is_offered_and_removed_and_nothing_else(
    run: RunDir, tmp_path: Path, ppo_tui: Callable[..., Any]
) -> None:
    home = str(tmp_path / "home")
    assert ppo_tui("clean", "--dry-run", "--json", PPO_TUI_HOME=home).stdout == "", "the run goes on"
    session = tmp_path / "ray" / "session_2026-11-22_20-40-07_609238_1" / "logs"
    session.mkdir(parents=True)
    with (session / "gcs_server.out").open("w"):
        found = RaySession.of([os.getpid()])
    assert found is not None and found.path == str(session.parent)
    (tmp_path / "go").touch()
    (tmp_path / "end").touch()
    wait_for(run, lambda state: not state.live)
    sleeps = [sys.executable, "-c", "import time; time.sleep(600)"]
    orphan, foreign = (
        subprocess.Popen(sleeps, env={**os.environ, "PPO_TUI_RUN": name}) for name in (run.id, "of-another-home")
    )
    found.write(run.attempt(1).ray)
    wait_until(lambda: run_processes(run.id) == [orphan.pid])
    offered = [
        json.loads(line) for line in ppo_tui("clean", "--dry-run", "--json", PPO_TUI_HOME=home).stdout.splitlines()
    ]
    assert [(each["run"], each["kind"]) for each in offered] == [(run.id, "process"), (run.id, "folder")]
    assert orphan.poll() is None and found.left, "it was only asked"
    threading.Thread(target=orphan.wait, daemon=True).start()
    assert ppo_tui("clean", "--yes", PPO_TUI_HOME=home).returncode == 0
    assert orphan.wait() == -signal.SIGKILL and foreign.poll() is None and not found.left
    foreign.kill()
    foreign.wait()
