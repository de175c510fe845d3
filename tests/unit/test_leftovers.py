"""Shared memory and sockets that dead runs have left: what is offered and removed, and what never is."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import call
from driven import driven
from waiting import wait_for, wait_until

from launcher.record.info import RunInfo
from launcher.record.layout import RunDir, create
from launcher.record.shared import Shared, SharedFile, shared_by
from launcher.record.state import RunState, current
from launcher.runs.act.removal import leftovers, remove

pytestmark = pytest.mark.usefixtures("home")
SHM = Path("/dev/shm")
MAKES = """
import mmap, os, socket, sys, time
from multiprocessing.shared_memory import SharedMemory
queue = SharedMemory(create=True, size=1 << 16)  # psm_..., as vLLM's broadcast queue
bound = socket.socket(socket.AF_UNIX)
bound.bind(sys.argv[1])
bound.listen()
with open(sys.argv[2], "w+b", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
    file.truncate(1 << 16)
    cuda = mmap.mmap(file.fileno(), 0)
    cuda[:] = bytes(1 << 16)
print(f"/dev/shm/{queue.name}", flush=True)
time.sleep(600)
"""


@pytest.fixture
def names() -> Iterator[tuple[str, str]]:
    """Paths for a socket of vLLM and for memory of CUDA."""
    made = (
        f"{tempfile.gettempdir()}/{uuid.uuid4()}",
        str(SHM / f"cuda.shm.0.{os.getpid():x}.{time.time_ns() % (1 << 30):x}"),
    )
    yield made
    for path in made:
        Path(path).unlink(missing_ok=True)


@pytest.fixture
def program(names: tuple[str, str]) -> Iterator[Callable[[], tuple["subprocess.Popen[str]", list[str]]]]:
    """Starts a program that makes shared memory and a socket; returns it with the paths of these."""
    running, paths = [], []

    def start() -> tuple["subprocess.Popen[str]", list[str]]:
        words = [sys.executable, "-c", MAKES, *names]
        running.append(started := subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True))
        assert started.stdout is not None
        paths.append(started.stdout.readline().strip())
        return started, [paths[-1], names[1], names[0]]

    yield start
    for each in running:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(each.pid, signal.SIGKILL)
        each.wait()
    for path in paths:
        Path(path).unlink(missing_ok=True)


def kill(started: "subprocess.Popen[str]") -> None:
    os.killpg(started.pid, signal.SIGKILL)  # also Python's resource tracker, which would remove its own
    started.wait()


def ended_run(shared: Shared) -> RunDir:
    run = create("x")
    RunInfo(run.id, "x").write(run.run_yaml)
    RunState("failed", attempt=1).write(run.state)
    shared.write(run.add_attempt().shared)
    return run


def test_what_a_dead_run_left_is_offered_with_its_size_and_removed(program: Any) -> None:
    started, paths = program()
    shared = Shared().grown([started.pid], 0.0)
    assert sorted(file.path for file in shared.files) == sorted(paths)
    gone = SharedFile(f"{SHM}/psm_00000000", 1, 2, 3)
    assert Shared((gone,)).grown([started.pid], 0.0) == shared and shared.grown([started.pid], 0.0) is shared
    assert Shared().grown([os.getpid()], 0.0).files == (), "they are of another program"
    assert Shared().grown([started.pid], time.time() + 60).files == (), "they are older than the last look"
    run = ended_run(shared)
    assert shared_by(run) == [], "a process uses them"
    kill(started)
    found = {each.name: (each.kind, each.bytes) for each in leftovers()}
    assert found == {paths[0]: ("memory", 0), paths[1]: ("memory", 1 << 16), paths[2]: ("socket", 0)}
    assert [*remove(leftovers()).values()] == [] and not any(Path(path).exists() for path in paths)


def test_what_another_process_uses_or_has_made_anew_stays(program: Any, names: tuple[str, str]) -> None:
    started, (queue, _, socket) = program()
    run = ended_run(Shared().grown([started.pid], 0.0))
    kill(started)
    offered = leftovers()
    assert len(offered) == 3
    Path(socket).unlink()
    with Path(queue).open("rb"):
        again, (other, *_) = program()  # the same paths, of a live process
        assert other != queue and [each.path for each in shared_by(run)] == []
        stay = remove(offered)
        assert {each.name: why for each, why in stay.items()}[queue] == "a process uses it"
        assert all(Path(path).exists() for path in (queue, other, socket))
    kill(again)
    assert [each.path for each in shared_by(run)] == [queue], "the others belong to a program without a run"


@pytest.mark.parametrize("change", ["other name", "open to others", "removed"])
def test_what_is_not_certain_is_not_recorded(program: Any, change: str) -> None:
    started, (_, cuda, _) = program()
    if change == "other name":
        Path(cuda).rename(moved := SHM / f"mine-{os.getpid()}")
        moved.unlink()
    elif change == "open to others":
        Path(cuda).chmod(0o644)
    else:
        Path(cuda).unlink()
    assert cuda not in [file.path for file in Shared().grown([started.pid], 0.0).files]


@pytest.mark.slow
def test_a_killed_run_leaves_what_clean_removes(names: tuple[str, str]) -> None:
    run = driven(MAKES, *names)
    attempt = run.attempt(1)
    wait_until(lambda: len((Shared.read(attempt.shared) or Shared()).files) == 3 or not current(run).live, every=0.2)
    assert call(["clean", "--json", "--dry-run"])[0] == b"", "the run goes on"
    driver = wait_for(run, lambda state: state.driver is not None).driver
    assert driver is not None
    os.killpg(driver.pid, signal.SIGKILL)
    wait_for(run, lambda state: not state.live)
    lines = [json.loads(line) for line in call(["clean", "--json", "--yes"])[0].splitlines()]
    assert [(each["run"], each["removed"]) for each in lines] == [(run.id, True)] * 3
    assert sorted((each["kind"], each["name"]) for each in lines)[1:] == sorted(
        [("memory", next(each["name"] for each in lines if "psm_" in each["name"])), ("socket", names[0])]
    )
    assert not Path(names[0]).exists() and not Path(names[1]).exists()
