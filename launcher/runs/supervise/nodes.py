"""Samples of the nodes of a cluster, for a run that is a job of it or has joined it: its dashboard tells them."""

import os
import re
import socket
import threading
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from launcher.core import clock
from launcher.core.errors import UserError
from launcher.machine.ray_jobs import Cluster
from launcher.machine.sampler import visible
from launcher.record.attempt import LaunchRecord
from launcher.record.layout import AttemptDir, RunDir
from launcher.record.machine import MachineSample
from launcher.record.ray_session import joined_session
from launcher.runs.supervise.disk import MachineLog
from launcher.runs.supervise.failures import Guard
from launcher.runs.supervise.sampling import Sampling
from launcher.verl.config import ray_address

_EVERY = 10.0  # seconds; Ray's agents look every 5, and each answer has all processes of all nodes
_A_GPU = 0.2  # seconds more rarely; so gpu.jsonl grows by less than 1 kB/s, whatever the size of the cluster
_SHARE = 0.2  # of the time at most goes by waiting for a dashboard, in which no sample is taken
_BEGINNING = 1 << 20  # bytes of a console in which Ray says where it has connected to
# ray/_private/worker.py: init, with colours around the address
_CONNECTED = re.compile(
    rb"^[^\n(]* -- Connected to Ray cluster\.(?: View the dashboard at (?:\x1b\[\d*m)*([^\s\x1b]+))?", re.MULTILINE
)


def sampling(run: RunDir, attempt: AttemptDir, launch: LaunchRecord, guard: Guard) -> "Sampling | NodeSampling":
    """What samples the machines of a run: those of its cluster where it has one. `guard` is that of `Sampling`."""
    log = MachineLog(run.machine)
    if launch.job is not None:
        return NodeSampling(log, launch.job.address)
    if ray_address(launch.keys) not in (None, "local"):  # there Ray gives the GPUs, whatever our shell names
        return Sampling(log, attempt.ray, None, guard, JoinedNodes(attempt.console))
    return Sampling(log, attempt.ray, visible({**os.environ, **launch.env}), guard)


class NodeSampling:
    """A thread that appends samples to gpu.jsonl and hands them over, as `Sampling` does for this machine."""

    hangs = False  # that the dashboard does not answer is told by who follows the job

    def __init__(self, log: MachineLog, address: str) -> None:
        self._log, self._cluster = log, Cluster(address)
        self._ending = threading.Event()
        self._latest: MachineSample | None = None
        threading.Thread(target=self._work, name="nodes", daemon=True).start()

    def sizes(self) -> dict[str, float]:
        """Nothing: a start does not wait for a cluster."""
        return {}

    def take(self) -> MachineSample | None:
        """The newest sample, once."""
        found, self._latest = self._latest, None
        return found

    def close(self) -> None:
        self._ending.set()

    def _work(self) -> None:
        while True:
            now = clock.now()
            try:
                sample = MachineSample.of_cluster(now, self._cluster.nodes())
            except UserError as error:
                sample = MachineSample(now, missing=f"the nodes are not available: {error}")
            if sample.nodes or self._latest is None:
                self._log.add(sample)
            self._latest = sample
            if self._ending.wait(_pace(sample)):
                return


class JoinedNodes:
    """The nodes of a cluster that a run has joined, beside the one where its driver runs. Of one node alone nothing."""

    def __init__(self, console: Path) -> None:
        self.every = 1.0
        self._console = console
        self._cluster: Cluster | None = None
        self._found: MachineSample | None = None
        self._away: str | None = None
        self._next = 0.0

    def beside(self, own: MachineSample, pids: Iterable[int]) -> MachineSample:
        if time.monotonic() >= self._next:
            self._ask(own.t, pids)
        if self._found is None:
            return replace(own, away=self._away)
        return own.among(self._found, socket.gethostname()) if len(self._found.nodes) > 1 else own

    def _ask(self, now: float, pids: Iterable[int]) -> None:
        self._found = self._away = None
        self.every, pause, begun = 1.0, _EVERY, time.monotonic()
        try:
            self._cluster = self._cluster or dashboard(self._console, pids)
            self._found = MachineSample.of_cluster(now, self._cluster.nodes())
            pause = _pace(self._found)
            if len(self._found.nodes) > 1:
                self.every = pause
        except UserError as error:
            self._away = f"the other nodes are not available: {error}"
        ended = time.monotonic()
        self._next = ended + max(pause, (ended - begun) / _SHARE)


def dashboard(console: Path, pids: Iterable[int]) -> Cluster:
    """The dashboard of the cluster that a run with these processes has joined. Raises UserError with what is missing.

    Ray prints its address as it connects. Without `--dashboard-host` it is one that only the head can reach, and on
    another node that of nobody, or of another Ray.
    """
    try:
        with console.open("rb") as stream:
            found = _CONNECTED.search(stream.read(_BEGINNING))
    except OSError:
        found = None
    if found is None:
        raise UserError("Ray has not printed which cluster it connected to")
    if found[1] is None:
        raise UserError("the cluster has no dashboard")
    cluster = Cluster(found[1].decode(errors="replace"))
    if cluster.session() != joined_session(pids):
        raise UserError(f"the dashboard at {cluster.url} belongs to another Ray")
    return cluster


def _pace(cluster: MachineSample) -> float:
    return max(_EVERY, _A_GPU * len(cluster.gpus))
