"""Containers that share a home: pids mean nothing in the other one, locks and signs of life do."""

import dataclasses
import fcntl
import functools
import itertools
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import call
from fake_nvml import FakeGpu, FakeNvml
from stepping import stepping_run
from waiting import PATIENCE, wait_for

from launcher.core import paths
from launcher.core.errors import UserError
from launcher.core.paths import own_command
from launcher.data import toy
from launcher.preset.files import load
from launcher.preset.translate import Launch
from launcher.record import process, queued
from launcher.record.info import RunInfo
from launcher.record.layout import RunDir, create
from launcher.record.process import ProcessId, lock
from launcher.record.queued import Checked, Queued
from launcher.record.state import RunState, current, stored
from launcher.runs.act import queue_runner, removal
from launcher.runs.act import stop as stopping
from launcher.runs.supervise.spawn import adopt, not_taken_over, orphaned, write_launch
from launcher.runs.watch.possible import Verb, refusal
from launcher.runs.watch.steps import steps
from launcher.runs.watch.turns import turns

ME = ProcessId.of(os.getpid())
assert ME is not None and ME.namespace is not None
CONTAINER = dataclasses.replace(ME, namespace=ME.namespace + 1)  # the same pid, counted by another container
B = ["unshare", "--pid", "--uts", "--mount", "--fork", "--mount-proc", "--kill-child"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path / "home"))
    return tmp_path


def written(supervisor: ProcessId, heartbeat: float = 0.0, console: float | None = 0.0) -> RunDir:
    """A running run with a heartbeat and a console of these ages."""
    run, now = create("x"), time.time()
    run.run_yaml.write_text(f"id: {run.id}\nname: x\n")
    attempt = run.add_attempt()
    write_launch(run, attempt, Launch(argv=[], env={}, unset=[], keys={}), created=now)
    if console is not None:
        attempt.console.touch()
        os.utime(attempt.console, (now - console, now - console))
    known = RunState("running", attempt=1, supervisor=supervisor, updated=now, heartbeat=now - heartbeat)
    known.write(run.state)
    (run.path / ".supervisor").touch()
    return run


CASES = list(
    itertools.product(
        ("same", "other"),  # boot
        ("same", "other", "absent"),  # namespace
        ("lives", "dead"),  # by its pid, as it counts here
        ("held", "free", "none"),  # lock
        (0.0, 50.0, 70.0, 7200.0),  # age of the heartbeat
        (None, 0.0, 500.0, 700.0),  # age of the console
    )
)


def test_whether_a_run_lives_follows_from_pids_here_and_from_lock_and_signs_of_life_elsewhere(monkeypatch):
    none = functools.partial(_raise, OSError(38, "no locks"))
    for boot, namespace, pid, locked, heartbeat, console in CASES:
        supervisor = dataclasses.replace(
            ME,
            boot=ME.boot if boot == "same" else "another",
            namespace={"same": ME.namespace, "other": CONTAINER.namespace, "absent": None}[namespace],
            ticks=ME.ticks if pid == "lives" else 1,
        )
        run = written(supervisor, heartbeat, console)
        held = lock(run.path / ".supervisor") if locked == "held" else None
        with monkeypatch.context() as patched:
            if locked == "none":
                patched.setattr(process.fcntl, "flock", none)
            state = current(run)
        here = boot == "same" and namespace != "other"
        by_pid = boot == namespace == "same"  # a record without a namespace may be of another container
        lives = (here and pid == "lives") or (locked == "held" and not by_pid) or (not here and heartbeat < 60)
        trains = not here and console is not None and console < 600
        case = (boot, namespace, pid, locked, heartbeat, console)
        assert state.state == ("running" if lives else "lost"), case
        assert state.going == (lives or trains), case
        assert (state.elsewhere is not None) == (not lives and not here), case
        for verb in (Verb.DELETE, Verb.RESUME):
            refused = refusal(verb, state, run.read_info()) if verb is Verb.DELETE else state.going
            assert bool(refused) == (lives or trains), case
        assert orphaned(run, state) == (not lives and not trains), case
        if held is not None:
            os.close(held)


def _raise(error: OSError, *_: object) -> None:
    raise error


def test_a_process_of_another_container_is_never_taken_for_one_of_here() -> None:
    assert ME is not None and ME.here and ME.alive() and not ME.gone
    assert CONTAINER.this_boot and not CONTAINER.here and not CONTAINER.alive() and not CONTAINER.gone
    assert not ME.same(CONTAINER) and ME.same(dataclasses.replace(ME, namespace=None))
    assert ProcessId.from_json({**ME.to_json(), "namespace": None}).here, "a record of an earlier version"


def test_delete_says_why_the_end_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal, "ended", current)
    run = written(CONTAINER, 7200, 3600)
    assert removal.check(run).endswith(
        "supervisor's lock is free, its last write was 2h 00m ago, its console last grew 1h 00m ago"
    )
    with pytest.raises(UserError, match="its driver may run in another container"):
        removal.check(written(CONTAINER, 120, 100))


def test_stop_signals_no_process_of_another_container(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    monkeypatch.setattr(os, "kill", lambda pid, _: sent.append(pid))
    monkeypatch.setattr(stopping, "HEARD", 0.1)
    run = written(CONTAINER)
    with pytest.raises(UserError, match="another container or on another machine, and has not answered"):
        stopping.stop(run)
    assert [path.name.endswith("-stop.json") for path in run.control.iterdir()] == [True], "it can still be taken"
    with pytest.raises(UserError, match="its driver may be running elsewhere"):
        stopping.stop(written(CONTAINER, 120, 100), wait=True)
    assert sent == []


def enqueue(id: str, **values: object) -> Queued:
    entry = dataclasses.replace(Queued(id, id, {}, os.uname().nodename, 1, queued.new_place(), time.time()), **values)  # type: ignore[arg-type]
    entry.save()
    Checked(ended=1.0).save(id)
    return entry


def test_gpus_of_another_container_are_known_by_their_uuids(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeNvml([FakeGpu(uuid=f"GPU-{n}") for n in range(4)]).install(monkeypatch)
    run, now = create("a"), time.time()
    run.run_yaml.write_text(f"id: {run.id}\nname: a\n")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,1")
    keys = {"trainer.n_gpus_per_node": 1}
    write_launch(run, attempt := run.add_attempt(), Launch(argv=[], env={}, unset=[], keys=keys), created=now)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    launch = attempt.read_launch()
    assert launch.gpus == ("GPU-3", "GPU-1"), "in the order of the variable"
    # there GPU-3 has the index 0, and the container another host name
    dataclasses.replace(launch, host="machineb", env={"CUDA_VISIBLE_DEVICES": "0"}).write(attempt.launch)
    RunState("running", attempt=1, supervisor=CONTAINER, updated=now, heartbeat=now).write(run.state)
    enqueue("x", needs=4)
    enqueue("y", gpus=("GPU-3",))
    first, second = turns()
    assert first.waits == f"4 GPUs; GPU 3 is used by {run.id}"
    assert second.waits == f"GPU GPU-3 is used by {run.id}"


def test_a_start_in_another_container_is_known_by_the_lock_of_the_queue() -> None:
    entry = enqueue("x", starter=CONTAINER, given=("0",))
    assert not entry.starting, "whoever started it is gone"
    descriptor = lock(paths.queue_dir())
    assert descriptor is not None and entry.starting
    with pytest.raises(UserError, match="is being started"):
        entry.remove()
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)
    with queued.alone() as ours:
        assert ours and not entry.starting, "who has the lock starts it again"


def test_an_entry_of_a_host_that_is_gone_is_taken_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_runner, "wake_queue", lambda: None)
    entry = enqueue("x", host="machineb", needs=0)
    assert "'ppo-tui queue resume x'" in str(turns()[0].waits)
    queue_runner.resume(entry)
    (turn,) = turns()
    assert turn.entry.host == os.uname().nodename and turn.unchecked, "its preflight was that of the other host"


@pytest.mark.nightly("launcher/core/", "launcher/record/", "launcher/runs/", every=5)
@pytest.mark.parametrize("by", ["owner", "mode"])
@pytest.mark.parametrize(
    "name", ["", "run.yaml", "state.json", "control", "attempts", "attempts/1", "attempts/1/launch.json"]
)
def test_a_run_that_other_users_may_write_is_not_taken_over(name: str, by: str) -> None:
    run = written(dataclasses.replace(ME, ticks=1))
    run.control.mkdir(exist_ok=True)
    state, place, before = current(run), run.path / name, run.state.read_bytes()
    assert orphaned(run, state) and not_taken_over(run, state) is None
    if by == "mode":
        place.chmod(0o777)
    elif os.getuid():
        pytest.skip("only root gives files to another user")
    else:
        os.chown(place, 12_345, 12_345)
    assert adopt([(run, state)]) == []
    for words in (["list"], ["status", run.id]):
        said = call(words)[1].decode()
        assert f"run {run.id} is not taken over: {run.path}" in said and f"'{place}'" in said
    # nor by a supervisor that was started before
    command = own_command("launcher.runs.supervise", str(run.path), "--adopt")
    assert subprocess.run(command, timeout=PATIENCE, check=False).returncode == 0
    assert run.state.read_bytes() == before


@pytest.fixture
def namespaces() -> None:
    if subprocess.run([*B, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this kernel or user may not make pid namespaces")


@pytest.fixture
def run(home: Path, namespaces: None) -> Iterator[RunDir]:
    """A run of this namespace, whose supervisor and driver live."""
    with stepping_run(home) as run:
        dataclasses.replace(run.read_info(), preset=load("toy-cpu").snapshot()).write(run.run_yaml)
        yield run


@pytest.mark.slow
def test_a_container_sees_a_run_of_another_one_and_stops_it_but_does_not_delete_it(run: RunDir) -> None:
    def b(*words: str) -> str:
        script = 'hostname machineb; exec "$@"'
        command = [*B, "sh", "-c", script, "-", sys.executable, "-c", "from tui.entry import main; main()", *words]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        return done.stdout + done.stderr

    assert "running" in b("list") and "state    running" in b("status", run.id)
    for verb in ("delete", "resume"):
        assert "the run has not ended" in b(verb, run.id, *(["--yes"] if verb == "delete" else []))
    b("clean", "--yes")
    state = current(run)
    assert state.state == "running" and state.driver is not None and state.driver.alive()
    assert "stopping run" in b("stop", run.id)
    wait_for(run, lambda state: state.state == "stopped")


# What veRL would print; the first attempt goes on for ever, the second one ends.
DRIVER = """
import os, sys, time
first = max(map(int, os.listdir(os.path.join(sys.argv[1], "attempts")))) == 1
print("Total training steps: 4", flush=True)
for step in (1, 2) if first else (3, 4):
    print(f"step:{step} - critic/score/mean:0.{step} - actor/pg_loss:0.1", flush=True)
time.sleep(600 if first else 0)
"""
A = """
import sys, time
from launcher.preset.translate import Launch
from launcher.record.layout import RunDir
from launcher.runs.supervise.spawn import spawn_supervisor, write_launch
run = RunDir(__import__("pathlib").Path(sys.argv[1]))
argv = [sys.executable, sys.argv[2], sys.argv[1]]
write_launch(run, run.add_attempt(), Launch(argv=argv, env={}, unset=[], keys={}), created=time.time())
spawn_supervisor(run)
time.sleep(600)
"""


@pytest.mark.slow
def test_a_restarted_container_resumes_its_run(home: Path, tmp_path: Path, namespaces: None) -> None:
    """Container A is killed with all its processes; B, which has its home, continues the run from its checkpoint."""
    run = create("x")
    (driver := tmp_path / "driver.py").write_text(DRIVER)
    (python := tmp_path / "python").write_text(
        f'#!/bin/sh\ncase "$*" in *main_ppo*) exec {sys.executable} {driver} {run.path};; esac\n'
        f'exec {sys.executable} "$@"\n'
    )
    python.chmod(0o700)
    preset = load("toy-cpu", [f"python={python}"])
    RunInfo(run.id, "x", time.time(), preset=preset.snapshot()).write(run.run_yaml)
    (home / "cache" / "toy").mkdir(mode=0o700, parents=True)
    (home / "cache" / "toy" / "recipe").write_text(toy.RECIPE)
    resume = [sys.executable, "-c", "from tui.entry import main; main()", "resume", run.id, "--force", "--detach"]
    a = subprocess.Popen([*B, sys.executable, "-c", A, str(run.path), str(driver)])
    try:
        before = wait_for(run, lambda state: state.step == 2).supervisor
        held = os.open(f"/proc/{a.pid}/ns/pid_for_children", os.O_RDONLY)  # no other namespace gets its number
        (run.checkpoints / "global_step_2" / "actor").mkdir(parents=True)
        (run.checkpoints / "latest_checkpointed_iteration.txt").write_text("2")
    finally:
        a.kill()
        a.wait()
    said = subprocess.run([*B, *resume], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert said.returncode == 2 and "the run has not ended" in said.stderr, "it has just been alive"
    now, console = time.time(), run.attempt(1).console
    os.utime(console, (now - 700, now - 700))
    stored_state = stored(run)
    assert stored_state is not None and stored_state.beat is not None
    dataclasses.replace(stored_state, heartbeat=now - 120, beat=stored_state.beat - 120).write(run.state)
    b = subprocess.Popen([*B, "sh", "-c", '"$@" 2>"$0" && exec sleep 600', str(tmp_path / "said"), *resume])
    try:
        state = wait_for(run, lambda state: state.attempt == 2 and not state.live)
    finally:
        b.kill()
        b.wait()
        os.close(held)
    assert (state.state, state.step) == ("finished", 4), (tmp_path / "said").read_text()
    assert state.supervisor.namespace not in (before.namespace, None)
    assert [record.step for _, record in steps(run)] == [1, 2, 3, 4]
    keys = run.attempt(2).read_launch().keys
    assert str(keys["trainer.resume_from_path"]).endswith("global_step_2")
