"""Real process trees, shaped like veRL's: children in process groups of their own, one session."""

import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from waiting import PATIENCE, wait_until

from launcher.record.process import ProcessId, processes_of_runs, run_processes, session_members
from launcher.record.ray_session import RaySession
from launcher.runs.supervise import driver

TREE = """
import os, signal, subprocess, sys, time
stubborn = sys.argv[1] == "stubborn"
signal.signal(signal.SIGTERM, signal.SIG_IGN if stubborn else lambda *_: sys.exit(print("closed", flush=True)))
child = "import os, signal as s, time; os.setpgid(0, 0); s.signal(s.SIGTERM, s.SIG_IGN); time.sleep(60)"
for _ in range(0 if sys.argv[1] == "alone" else 2):
    subprocess.Popen([sys.executable, "-c", child])
print("up", flush=True)
time.sleep(60)
"""


def start(tmp_path: Path, kind: str = "gentle") -> tuple["subprocess.Popen[bytes]", ProcessId]:
    console = tmp_path / "console.log"
    process = driver.spawn([sys.executable, "-c", TREE, kind], os.environ, tmp_path, console)
    wait_until(lambda: b"up" in console.read_bytes())
    leader = ProcessId.of(process.pid)
    assert leader is not None
    wait_until(lambda: len(session_members(leader)) == (1 if kind == "alone" else 3))
    return process, leader


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gentle", "stubborn", "alone"])
def test_stop_leaves_nothing_of_the_session_and_touches_nobody_else(tmp_path: Path, kind: str) -> None:
    bystander = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    process, leader = start(tmp_path, kind)
    threading.Thread(target=process.wait, daemon=True).start()  # the supervisor reaps its child all the time
    assert driver.stop(leader, patience=PATIENCE if kind == "alone" else 0.5) == []
    assert session_members(leader) == [] and not leader.alive()
    assert kind != "alone" or b"closed" in (tmp_path / "console.log").read_bytes()
    assert bystander.poll() is None
    bystander.kill()
    bystander.wait()


def test_a_session_outlives_its_leader_and_is_still_found_but_not_that_of_another_machine(tmp_path: Path) -> None:
    process, leader = start(tmp_path)
    assert session_members(replace(leader, boot="of another machine")) == []
    process.kill()
    process.wait()
    assert not leader.alive() and session_members(leader)
    assert driver.sweep(leader) == [] and session_members(leader) == []


def test_a_reused_pid_is_not_the_same_process() -> None:
    me = ProcessId.of(os.getpid())
    assert me is not None and me.alive()
    assert me.ticks is not None and not replace(me, ticks=me.ticks - 1000).alive()
    assert not replace(me, ticks=None, started=me.started - 1000).alive()
    assert not replace(me, boot="of another machine").alive()


def test_a_clock_that_is_set_ends_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process, leader = start(tmp_path)
    real = psutil.boot_time()
    monkeypatch.setattr("psutil._pslinux.boot_time", lambda: real - 3600)  # what the kernel then tells
    known = ProcessId.from_json(leader.to_json())
    assert known is not None and known.alive() and session_members(known)
    threading.Thread(target=process.wait, daemon=True).start()
    assert driver.stop(known, patience=0.5) == [] and not known.alive()


@pytest.mark.parametrize(
    ("returncode", "expected"),
    [(0, (0, None)), (1, (1, None)), (-6, (134, "SIGABRT")), (134, (134, "SIGABRT")), (-9, (137, "SIGKILL"))],
)
def test_exit_codes_are_those_of_a_shell(returncode: int, expected: tuple[int, str | None]) -> None:
    assert driver.exit_status(returncode) == expected


def test_processes_and_folders_of_another_user_are_never_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = f"owned-{tmp_path.name}"
    sleeper = subprocess.Popen(["sleep", "600"], env={**os.environ, "PPO_TUI_RUN": run})
    try:
        wait_until(lambda: run_processes(run) == [sleeper.pid])
        status = tmp_path.stat()
        session = RaySession(str(tmp_path), status.st_dev, status.st_ino)
        assert session.left
        monkeypatch.setattr(os, "getuid", lambda: status.st_uid + 1)
        assert run_processes(run) == [] and (sleeper.pid, run) not in processes_of_runs()
        assert not session.left
    finally:
        sleeper.kill()
        sleeper.wait()
