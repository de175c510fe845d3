"""What real processes wait for, and the supervisor that names it."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from driven import driven, listener
from tables import tabled
from waiting import wait_for, wait_until

from launcher import inside
from launcher.inside.ppo_tui_inside import stacks as plugin
from launcher.record.events import Note, read_kind
from launcher.record.layout import AttemptDir, create
from launcher.record.process import run_processes
from launcher.record.standstill import HangFacts
from launcher.runs.act.stop import stop
from launcher.runs.supervise.stalls import stacks
from launcher.runs.supervise.stalls.judging import judge
from launcher.runs.supervise.stalls.looking import look
from launcher.runs.supervise.stalls.report import report
from launcher.runs.watch.stalls import last_standstill

FAULTS = Path(__file__).parents[1] / "support/stalls_faults.py"


def planted(attempt: AttemptDir, name: str, *, after: bytes = b"step:5") -> "subprocess.Popen[bytes]":
    env = {**os.environ, "VERL_FILE_LOGGER_PATH": str(attempt.metrics), "PYTHONPATH": str(inside.FOLDER)}
    with attempt.console.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, str(FAULTS), name, str(attempt.path)],
            env=env,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    wait_until(lambda: after in attempt.console.read_bytes() or process.poll() is not None, attempt.console.read_bytes)
    time.sleep(1.5)
    return process


@pytest.mark.nightly("launcher/runs/supervise/stalls/", "launcher/inside/", "tests/support/stalls_faults.py", every=4)
@pytest.mark.slow
@tabled
def test_real_processes_show_what_they_wait_for(tmp_path: Path, name: str, right: str, words: str) -> None:
    if name in ("missing", "spinning", "killed_rank", "data_loader"):
        pytest.importorskip("torch")
    pytest.importorskip("filelock")
    (tmp_path / "1").mkdir()
    attempt = AttemptDir(tmp_path / "1")
    process = planted(attempt, name, after=b"step:7" if name == "data_loader" else b"step:5")
    try:
        pids = [process.pid, *(child.pid for child in psutil.Process(process.pid).children(recursive=True))]
        facts = look(attempt, pids, "rollout", python=sys.executable, since=time.time())
        found = judge(facts)
        assert found is not None and found.reason == right, report(facts, attempt.console, tmp_path / "x", None)
        assert words in " ".join(found.evidence)
        assert HangFacts.from_json(json.loads(json.dumps(facts.to_json()))) == facts
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextlib.contextmanager
def with_plugin(tmp_path: Path, code: str) -> Iterator[tuple["subprocess.Popen[bytes]", Path]]:
    """A process that has loaded the plugin and runs `code`, and the folder in which it answers."""
    env = {**os.environ, "VERL_FILE_LOGGER_PATH": str(tmp_path / "metrics.jsonl"), "PYTHONPATH": str(inside.FOLDER)}
    words = [sys.executable, "-c", f"from ppo_tui_inside import stacks; stacks.install()\n{code}"]
    with subprocess.Popen(words, env=env) as process:
        folder = tmp_path / plugin.FOLDER
        wait_until((folder / f"{process.pid}.ask").exists)
        time.sleep(0.5)
        try:
            yield process, folder
        finally:
            process.kill()


@pytest.mark.slow
def test_asking_does_not_harm_a_process_whose_threads_are_busy(tmp_path: Path) -> None:
    """faulthandler's signal killed a driver of Ray here, so a thread answers instead."""
    work = "def work():\n  while True: exec('def f(x): return [y for y in range(x)]\\nf(50)', {})\n"
    threads = "import threading\nfor _ in range(4): threading.Thread(target=work, daemon=True).start()\nwork()"
    with with_plugin(tmp_path, work + threads) as (process, folder):
        answers = [stacks.ask(folder, [process.pid])[process.pid] for _ in range(10)]
        assert process.poll() is None
        assert any(len(doing.stacks) == 5 and doing.source == "plugin" for doing in answers)


@pytest.mark.slow
def test_a_process_that_holds_the_interpreter_in_c_answers_by_faulthandler(tmp_path: Path) -> None:
    code = "import ctypes\ndef stuck(): ctypes.PyDLL(None).sleep(600)\nstuck()"
    with with_plugin(tmp_path, code) as (process, folder):
        assert not stacks.ask(folder, [process.pid])[process.pid].stacks
        found = stacks.dump(folder, [process.pid])[process.pid]
        assert found.source == "faulthandler" and any("stuck" in frame for frame in found.stacks[-1].frames)
        assert process.poll() in (None, 0), "the signal interrupts its sleep"


def test_the_flight_recorder_is_on_by_the_names_of_the_installed_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda name: "2.8.0")
    assert plugin.recorder("/x/")["TORCH_NCCL_TRACE_BUFFER_SIZE"] == "2000"
    monkeypatch.setattr("importlib.metadata.version", lambda name: "2.13.0+cpu")
    assert plugin.recorder("/x/")["TORCH_FR_BUFFER_SIZE"] == "2000"


def test_a_process_without_the_plugin_gets_no_signal(tmp_path: Path) -> None:
    (tmp_path / plugin.FOLDER).mkdir()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        (tmp_path / plugin.FOLDER / f"{process.pid}.txt").touch()  # left by an earlier process of this pid
        folder = tmp_path / plugin.FOLDER
        assert stacks.ask(folder, [process.pid]) == {} and stacks.dump(folder, [process.pid]) == {}
        process.communicate(b"\n")
        assert process.returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("ends", ["moves again", "stopped"])
def test_the_supervisor_names_the_reason(ends: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole way: state.json, the files of the attempt, an alert, an event; then the queue is read, or a stop."""
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path / "home"))
    driver = f"""
import os, queue, signal, sys, threading, time
signal.signal(signal.SIGTERM, lambda *_: (print("ending", flush=True), time.sleep(3), os._exit(1)))
sys.argv = ["x", "none", {str(tmp_path)!r}]
sys.path.insert(0, {str(FAULTS.parent)!r})
import stalls_faults
slots = queue.Queue(1)
def take():
    while not (stalls_faults.FOLDER / "go").exists():
        time.sleep(0.1)
    slots.get()
threading.Thread(target=take, daemon=True).start()
stalls_faults.steps()
slots.put(1); slots.put(2)
stalls_faults.steps(200, 0.2)
"""
    run, heard = create("x"), tmp_path / "heard.jsonl"
    attempt = run.attempt(1)
    env = {"VERL_FILE_LOGGER_PATH": str(attempt.metrics.absolute()), "PYTHONPATH": str(inside.FOLDER)}
    driven(driver, run=run, env=env, preset={"health": {"on_alert": listener(heard)}})
    try:
        state = wait_for(run, lambda state: state.standstill is not None or not state.live)
        assert state.standstill is not None and state.standstill.reason == "queue-full", attempt.console.read_text()
        assert state.stalled and (state.stall or "").startswith("A queue has no free slot (no progress for ")
        wait_until(attempt.stall.exists)
        assert "queue.py" in attempt.stall.read_text() and HangFacts.read(attempt.stall_facts) is not None
        wait_until(heard.exists)
        told = [json.loads(line) for line in heard.read_text().splitlines()]
        assert told[0]["kind"] == "stall" and told[0]["reason"] == "queue-full" and told[0]["evidence"]
        if ends == "stopped":
            stop(run, by="test", wait=True)
            assert (hung := last_standstill(run)) is not None and hung.until is None
            return
        (tmp_path / "go").touch()
        wait_for(run, lambda state: state.standstill is None and not state.stalled)
        over = last_standstill(run)
        assert over is not None and over.until is not None
        notes = [note.text for note in read_kind(run.events, Note)]
        assert notes[0].startswith("the run hangs: A queue") and notes[1].startswith("the run continues")
    finally:
        stop(run, by="test", wait=True)
        for pid in run_processes(run.id):
            os.kill(pid, signal.SIGKILL)
