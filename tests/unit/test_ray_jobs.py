"""Runs on a Ray cluster: a real one with two nodes, a token and another user, and a job that prints a recorded run."""

import contextlib
import os
import random
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest
from driven import driven
from quoted import quoted
from waiting import wait_for, wait_until

from launcher.check import cluster
from launcher.check.finding import Finding
from launcher.check.subject import subject
from launcher.core.errors import UserError
from launcher.machine.ray_jobs import Cluster, Unreachable, url_of
from launcher.preset.files import load
from launcher.record.layout import RunDir, create
from launcher.record.machine import MachineSample
from launcher.record.process import RUN, run_processes
from launcher.record.state import current
from launcher.runs.act.attach_job import attach_job
from launcher.runs.act.stop import stop
from launcher.runs.supervise.spawn import kept
from launcher.runs.watch.steps import steps

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("ray")]  # starts Ray, once

RAY = f"ray-jobs-test-{os.getpid()}"  # what is left of it is killed by this name
PRESET = load("toy-cpu").snapshot()
_LOOK = 0.5  # seconds between two questions to the head, which has to work for each
LOG = Path(__file__).parent.parent / "data" / "logs" / "cpu-toy.log.gz"

# Prints half of a recorded run, the rest when it is told, and ends when it is told.
JOB = """
import gzip, pathlib, sys, time
log, folder = sys.argv[1:3]
def wait(name):
    while not pathlib.Path(folder, name).exists():
        time.sleep(0.05)
lines = gzip.open(log).read().splitlines(keepends=True)
half = next(at for at, line in enumerate(lines) if b'step:6 ' in line)
sys.stdout.buffer.writelines([*lines[:half], b"\\xff no UTF-8, and a half line "])
sys.stdout.flush()
wait("go")
for line in lines[half:]:
    sys.stdout.buffer.write(line)
    sys.stdout.flush()
    time.sleep(0.001)
wait("end")
sys.exit(int(sys.argv[3]))
"""


# Two nodes on this machine; the second one has the GPUs, as far as Ray counts. Ray itself would give up when a node
# takes 30 s to start.
CLUSTER = """
import sys, time
from ray._private import services
from ray.cluster_utils import Cluster
def there(*node, look=services.get_node):
    while True:
        try:
            return look(*node)
        except RuntimeError:
            time.sleep(0.5)
services.get_node = there
dashboard, gcs, one, two = sys.argv[1:5]
usual = {"object_store_memory": 80_000_000, "include_log_monitor": False}
head = {"num_cpus": 2, "num_gpus": 0, "include_dashboard": True, "dashboard_port": int(dashboard)}
head |= {"gcs_server_port": int(gcs), "dashboard_agent_listen_port": int(one)}
cluster = Cluster(initialize_head=True, head_node_args={**usual, **head})
second = {"num_cpus": 4, "num_gpus": 2, "resources": {"second": 1}, "dashboard_agent_listen_port": int(two)}
follower = cluster.add_node(wait=False, **second, **usual)
while cluster.head_node.remaining_processes_alive() and follower.remaining_processes_alive():
    time.sleep(1)
"""

# Of another user: an actor on the second node that holds a GPU.
THEIRS = """
import ray, time
ray.init()
@ray.remote(num_gpus=1, resources={"second": 1})
class Theirs:
    def here(self): return True
actor = Theirs.remote()
ray.get(actor.here.remote())
time.sleep(3600)
"""


# A driver on this machine, with an actor that holds memory, as veRL's workers do.
JOINS = """
import sys, time, ray
ray.init(address=sys.argv[1], runtime_env={"env_vars": {"PPO_TUI_RUN": sys.argv[2]}})
@ray.remote(num_cpus=0)
class Worker:
    def hold(self):
        self.held = b"x" * 400_000_000
worker = Worker.remote()
ray.get(worker.hold.remote())
time.sleep(3600)
"""


@dataclass
class Head:
    """The head of a cluster, by the address of its dashboard; `gcs` is the one that drivers join."""

    address: str
    gcs: str
    logs: Path

    def log_of(self, job: str) -> bytes:
        return next(self.logs.glob(f"session_2*/logs/job-driver-{job}.log")).read_bytes()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.fixture(scope="module")
def head(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Head]:
    """One head for all tests; nothing of it runs afterwards."""
    pytest.importorskip("ray")
    home = Path("/tmp") / f"ppo-tui-ray-{os.getpid()}"  # its sockets must have short names
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_TOKEN", "sesame" * 8)
        log = (tmp_path_factory.mktemp("ray") / "start.log").open("wb")
        try:
            yield started(home, log)
        finally:
            log.close()
            end(home)


def started(home: Path, log: IO[bytes]) -> Head:
    """Starts the cluster."""
    port, gcs, *agents = (free_port() for _ in range(4))
    env = {**os.environ, "RAY_AUTH_MODE": "token", "RAY_USAGE_STATS_ENABLED": "0", RUN: RAY}
    env["RAY_agent_register_timeout_ms"] = "600000"
    env["RAY_prestart_worker_first_driver"] = "0"  # of the six that would be, no test needs more than two
    # also for the file that says which is the cluster of this machine: jobs get their address from it
    home.mkdir(exist_ok=True)
    env["RAY_TMPDIR"] = str(home)
    argv = [sys.executable, "-c", CLUSTER, *map(str, (port, gcs, *agents))]
    process = subprocess.Popen(argv, env=env, stdout=log, stderr=log, start_new_session=True)
    address = f"127.0.0.1:{port}"
    dashboard = Cluster(address)  # once: it takes longer to make than to ask

    def both_nodes() -> bool:
        with contextlib.suppress(Unreachable):
            return len(MachineSample.of_cluster(0, dashboard.nodes()).nodes) == 2
        return False

    wait_until(lambda: process.poll() is not None or both_nodes(), every=_LOOK)
    assert process.poll() is None, f"Ray did not start; see {log.name}"
    return Head(address, f"127.0.0.1:{gcs}", home / "ray")


def end(home: Path) -> None:
    """Kills all of the cluster."""
    while left := run_processes(RAY):
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        time.sleep(0.1)
    subprocess.run(["rm", "-rf", str(home)], check=True)


@pytest.fixture(scope="module")
def theirs(head: Head) -> str:
    """The actor of somebody else, by its id."""
    jobs = Cluster(head.address)
    wait_until(lambda: submitted(jobs), every=_LOOK)
    wait_until(lambda: bool(jobs.actors("Theirs")), every=_LOOK)
    (actor,) = jobs.actors("Theirs")
    return actor


def submitted(jobs: Cluster) -> bool:
    with contextlib.suppress(Unreachable):  # no agent yet
        jobs.submit("theirs", f"exec {sys.executable} -c {shlex.quote(THEIRS)}", {}, {})
        return True
    return False


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Runs of this test alone, whose followers end with it."""
    homes = [tmp_path / "one", tmp_path / "two"]
    monkeypatch.setenv("PPO_TUI_HOME", str(homes[0]))
    yield homes[0]
    for state in (current(RunDir(path)) for each in homes for path in (each / "runs").glob("[!.]*")):
        if state.supervisor is not None and state.supervisor.alive():
            os.kill(state.supervisor.pid, signal.SIGKILL)


def submit(address: str, told: Path, code: int = 0) -> RunDir:
    """A run whose job prints the recorded log."""
    words, keys = (str(LOG), str(told), str(code)), {"trainer.save_freq": 5}
    return driven(JOB, *words, run=create("toy-cpu"), name="toy-cpu", preset=PRESET, keys=keys, submit=address)


def kill(run: RunDir) -> None:
    supervisor = current(run).supervisor
    assert supervisor is not None
    os.kill(supervisor.pid, signal.SIGKILL)
    wait_until(lambda: not supervisor.alive())


def test_a_job_is_followed_by_whoever_looks_and_ends_with_its_whole_log(
    head: Head, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = submit(head.address, tmp_path)
    half = wait_for(run, lambda state: state.state == "running" and (state.step or 0) > 3).step
    kill(run)
    assert current(run).state == "lost"
    assert kept(run).live, "another supervisor follows the job"

    monkeypatch.setenv("PPO_TUI_HOME", str(home.with_name("two")))
    again = attach_job(head.address, run.id)
    assert again.path != run.path and attach_job(head.address, run.id).path == again.path
    assert again.read_info().preset == run.read_info().preset and again.read_name() == "toy-cpu"
    wait_for(again, lambda state: state.step == half)

    (tmp_path / "go").touch()
    (tmp_path / "end").touch()
    for each in (run, again):
        state = wait_for(each, lambda state: not state.live and state.driver_alive is None)
        assert (state.state, state.exit and state.exit.code) == ("finished", 0), state.error
        assert each.attempt(1).console.read_bytes() == head.log_of(run.id)
        found = [record.step for _, record in steps(each)]
        assert found == sorted(set(found)) and len(found) > 10
    assert [(r.step, r.data) for _, r in steps(run)] == [(r.step, r.data) for _, r in steps(again)]


def test_twenty_cut_connections_lose_and_double_nothing_of_a_job_that_fails(
    head: Head, home: Path, tmp_path: Path
) -> None:
    with Cutting(int(head.address.rpartition(":")[2])) as proxy:
        run = submit(f"127.0.0.1:{proxy.port}", tmp_path, code=3)
        (tmp_path / "go").touch()
        wait_until(lambda: proxy.cut >= 20)
        (tmp_path / "end").touch()
        state = wait_for(run, lambda state: not state.live)
    assert (state.state, state.exit and state.exit.code) == ("failed", 3), state.error
    assert run.attempt(1).console.read_bytes() == head.log_of(run.id)
    secret = os.environ["RAY_AUTH_TOKEN"]
    assert not any(secret.encode() in file.read_bytes() for file in run.path.rglob("*") if file.is_file())
    with pytest.raises(UserError, match=f"did you mean '{run.id}'"):
        attach_job(head.address, f"{run.id}x")


def test_a_stop_ends_the_job_and_nothing_else(head: Head, theirs: str, home: Path, tmp_path: Path) -> None:
    jobs = Cluster(head.address)
    jobs.submit("theirs", "exec false", {}, {})  # a lost answer, and asked again
    run = submit(head.address, tmp_path)
    wait_for(run, lambda state: (state.step or 0) > 3)
    assert stop(run, by="me", wait=True) == "stopped"
    ended = run.attempt(1).read_exit()
    assert ended is not None and ended.requested_by == "me"
    job, other = jobs.job(run.id), jobs.job("theirs")
    assert job is not None and other is not None
    assert job.status == "STOPPED" and jobs.left(job) == []
    assert other.status == "RUNNING" and "sleep" in other.entrypoint and jobs.actors("Theirs") == [theirs]
    sample = MachineSample.from_line(run.machine.read_bytes().splitlines()[-1])
    assert sample is not None and len(sample.nodes) == 2 and all(node.total for node in sample.nodes)


def test_a_run_that_joins_has_the_nodes_and_its_own_memory_among_them(head: Head, theirs: str, home: Path) -> None:
    run = create("toy-cpu")
    driven(JOINS, head.gcs, run.id, run=run, keys={"ray_kwargs.ray_init.address": head.gcs})

    def latest() -> MachineSample:
        lines = run.machine.read_bytes().splitlines() if run.machine.exists() else []
        return (MachineSample.from_line(lines[-1]) if lines else None) or MachineSample(0)

    wait_until(lambda: len(latest().nodes) == 2 and (latest().nodes[0].run_used or 0) > 400_000_000, latest)
    here, other = latest().nodes
    assert here.name == socket.gethostname() and other.total and other.run_used is None and latest().away is None
    assert stop(run, by="me", wait=True) == "stopped"
    assert run_processes(run.id) == [] and Cluster(head.address).actors("Theirs") == [theirs]


def test_a_missing_or_wrong_token_is_told(
    head: Head, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN", "wrong")
    with pytest.raises(UserError, match="does not accept this token"):
        Cluster(head.address).jobs()
    (error,) = cluster.checks(subject(load("toy-cpu", [f"cluster.address={head.gcs}"])))
    assert error.id == "CLUSTER-2" and "the token is missing or does not match" in error.message
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    with pytest.raises(UserError, match="requires a token; set RAY_AUTH_TOKEN"):
        Cluster(head.address).jobs()
    refused = submit(head.address, tmp_path)
    assert "requires a token" in str(wait_for(refused, lambda state: not state.live).error)


def test_the_preflight_asks_the_cluster(head: Head, theirs: str, home: Path, tmp_path: Path) -> None:
    def found(*settings: str) -> dict[str, Finding]:
        what = subject(load("toy-cpu", settings))
        return {each.id: each for each in cluster.checks(what) if each.level != "info"}

    join, submitted = f"cluster.address={head.gcs}", (f"cluster.address={head.address}", "cluster.submit=true")
    assert found(join) == {}
    (lack,) = found(*submitted, "trainer.gpus=2").values()
    assert quoted(lack.message) == ["2", "1", "2", "1"] and "theirs" in lack.message
    assert lack.change == {"trainer.nodes": 1, "trainer.gpus": 1}
    assert "does not answer" in found("cluster.submit=true", "cluster.address=127.0.0.1:1")["CLUSTER-2"].message
    assert "no Ray cluster answers" in found("cluster.address=127.0.0.1:1")["CLUSTER-2"].message


class Cutting:
    """A proxy that breaks each of the first 20 connections after some of the log went through it."""

    def __init__(self, to: int) -> None:
        self._to, self._random = to, random.Random(7)
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port, self.cut = int(self._server.getsockname()[1]), 0

    def __enter__(self) -> "Cutting":
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._server.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self._to))
            for pair in ((near, far, False), (far, near, True)):
                threading.Thread(target=self._pass, args=pair, daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, answers: bool) -> None:
        left, log = self._random.randrange(20_000 * (self.cut + 1)), False  # further each time
        try:
            while chunk := source.recv(4096):
                log = log or b"attachment" in chunk  # the head of an answer that is a log
                if answers and log and self.cut < 20:
                    chunk, left = chunk[:left], left - len(chunk)
                    if left <= 0:
                        target.sendall(chunk)
                        self.cut += 1
                        break
                target.sendall(chunk)
        except OSError:
            pass
        for each in (source, target):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)  # also wakes the thread of the other direction
            each.close()


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("auto", "http://127.0.0.1:8265"),
        ("head", "http://head:8265"),
        ("head:9000", "http://head:9000"),
        ("https://ray.example.org", "https://ray.example.org"),
        ("[::1]:8265", "http://[::1]:8265"),
        *((wrong, "") for wrong in ("ray://head:10001", "http://head:8265/x?y", "a b", "", "head:x")),
    ],
)
def test_addresses(address: str, url: str) -> None:
    with contextlib.nullcontext() if url else pytest.raises(UserError, match="dashboard"):
        assert url_of(address) == url
