"""Supervision under hardship: a full disk, a removed folder, a killed supervisor, two at once."""

import errno
import os
import resource
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from driven import SLEEPS, driven, known, written
from stepping import STEPS, stepping_run
from waiting import wait_for, wait_until

from launcher.core.errors import UserError
from launcher.core.files import Appender
from launcher.record.control import alone
from launcher.record.layout import RunDir
from launcher.record.process import session_members
from launcher.record.state import current
from launcher.runs.act.removal import delete
from launcher.runs.act.resume import resume
from launcher.runs.act.stop import stop
from launcher.runs.supervise.disk import Reserve
from launcher.runs.supervise.spawn import spawn_supervisor
from launcher.runs.watch.reader import RunReader
from launcher.runs.watch.steps import steps

pytestmark = pytest.mark.slow  # each starts supervisors and drivers


@pytest.fixture
def run(tmp_path: Path, home: Path) -> Iterator[RunDir]:
    with stepping_run(tmp_path) as run:
        yield run


def test_a_full_disk_costs_no_step_and_no_end(run: RunDir, tmp_path: Path) -> None:
    state = current(run)
    supervisor = known(state.supervisor)
    # nothing that it writes can grow now: to it the disk is full
    resource.prlimit(supervisor.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    (tmp_path / "go").touch()
    heartbeat = state.heartbeat or 0.0
    wait_until(lambda: time.time() - heartbeat > 7)  # a beat was due
    assert supervisor.alive() and current(run).step == 1
    (tmp_path / "end").touch()
    wait_until(lambda: not session_members(known(state.driver)))
    assert supervisor.alive() and current(run).state == "running"
    resource.prlimit(supervisor.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    state = wait_for(run, lambda state: not state.live)
    assert state.state == "finished" and state.exit is not None and state.exit.code == 0
    wait_until(lambda: len(list(steps(run))) == 5)
    assert [record.step for _, record in steps(run)] == [1, 2, 3, 4, 5]


def test_what_a_full_disk_took_half_is_completed(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    file = Appender(path, patient=True)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (12, hard))
    try:
        file.add([b"first\n", b"second line\n"])
        file.add([b"third\n"])
        with pytest.raises(OSError, match="File too large"):
            file.flush()
        with pytest.raises(OSError, match="File too large"):
            Appender(path).add([b"impatient\n"])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == b"first\nsecond"
    file.add([b"fourth\n"])
    assert path.read_bytes() == b"first\nsecond line\nthird\nfourth\n"


def test_the_record_of_the_end_uses_the_space_that_was_reserved_for_it(tmp_path: Path) -> None:
    room, said = tmp_path / "room", []

    def write() -> None:
        if room.exists():
            raise OSError(errno.ENOSPC, "full")
        said.append("it failed")

    Reserve(room, lambda: False).retry(write)
    assert said == ["it failed"]
    Reserve(room, lambda: True).retry(write)  # the run was removed: nobody can read it any more
    assert said == ["it failed"]


def test_a_run_whose_folder_was_removed_is_ended(run: RunDir) -> None:
    state = current(run)
    while run.path.exists():  # its supervisor may be writing into it
        shutil.rmtree(run.path, ignore_errors=True)
    wait_until(lambda: not session_members(known(state.driver)))
    wait_until(lambda: not known(state.supervisor).alive())
    assert not run.path.exists()


def test_a_stop_that_cannot_be_written_down_reaches_the_supervisor_as_a_signal(run: RunDir) -> None:
    run.control.rmdir()
    run.control.touch()
    assert stop(run, wait=True) == "stopped"
    record = current(run).exit
    assert record is not None and record.requested_by == "SIGTERM to the supervisor"


def test_an_ended_run_is_resumed_or_deleted_by_one_alone(run: RunDir) -> None:
    stop(run, wait=True)
    with alone(run):
        for change in (resume, delete):
            with pytest.raises(UserError, match="by another process"):
                change(run)
    delete(run)
    assert not run.path.exists()


def test_a_history_that_takes_long_holds_back_no_start(run: RunDir, tmp_path: Path) -> None:
    stop(run, wait=True)
    first = run.attempt(1)
    first.steps.unlink()
    os.mkfifo(first.steps)  # reading it lasts until somebody has written
    (tmp_path / "go").touch()
    driven(STEPS, str(tmp_path), run=run, resume_step=1)
    wait_for(run, lambda state: state.driver is not None)
    wait_until(lambda: b"step:5" in run.attempt(2).console.read_bytes())
    assert current(run).step is None
    line = b'{"step":1,"t":1.0,"log_offset":0,"data":{"actor/entropy":0.5}}\n'
    with first.steps.open("wb") as fifo:
        fifo.write(line)
        first.steps.unlink()  # others read it later
        first.steps.write_bytes(line)
    wait_for(run, lambda state: state.step == 5)
    assert stop(run, wait=True) == "stopped"


def test_a_driver_that_prints_without_end_can_be_stopped(home: Path) -> None:
    (home / "config.yaml").write_text("max_console_size: 100 GiB\n")
    run = written(SLEEPS)
    with run.attempt(1).console.open("wb") as console:  # faster than anybody reads: it is all there already
        console.seek(1 << 16)  # the first hole is a gap, which nobody reads
        console.write(b"x")
        console.truncate(64 << 30)  # a hole takes no room
        console.seek(0, os.SEEK_END)
        console.write(b"\nstep:1 - critic/score/mean:0.5\n")
    spawn_supervisor(run)
    state = wait_for(run, lambda state: state.driver is not None)
    stop(run)
    wait_until(lambda: not session_members(known(state.driver)))
    wait_for(run, lambda state: state.state != "starting")  # the driver may be gone before that is written
    assert current(run).state == "stopping" and current(run).step is None  # it still reads
    shutil.rmtree(run.path, ignore_errors=True)
    wait_until(lambda: not known(state.supervisor).alive())


def test_a_screen_skips_what_a_log_grew_by_at_once(run: RunDir) -> None:
    reader, console = RunReader(run.path), run.attempt(1).console
    reader.poll()
    with console.open("ab") as file:
        file.write(b"early\n" + b"\n" * (5 << 20) + b"late\n")
    reader.poll()
    assert "late" in reader.log and "early" not in reader.log
