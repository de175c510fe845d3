"""Samples the machine or the cluster's nodes in threads: NVML and networks may hang for minutes."""

import os
import re
import socket
import threading
import time
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from launcher.core import clock
from launcher.core.errors import UserError
from launcher.machine.ray_jobs import Cluster
from launcher.machine.sampler import Sampler, visible
from launcher.record.attempt import LaunchRecord
from launcher.record.layout import AttemptDir, RunDir
from launcher.record.machine import MachineSample
from launcher.record.process import ProcessId, run_members
from launcher.record.ray_session import RaySession, joined_session
from launcher.record.shared import Shared
from launcher.runs.judge.run_checklist import machine_sizes
from launcher.runs.supervise.disk import MachineLog
from launcher.runs.supervise.failures import Guard
from launcher.runs.watch.checkpoints import CheckpointDisk
from launcher.verl.config import ray_address

_STARTS = 5.0  # seconds that NVML may take to start before a run is started without it
_ENDS = 3.0  # seconds that the last sample may take
_HANGS = 60.0  # seconds without a sample before a report
_LOOKED = 10.0  # seconds between two scans of /proc for the run's processes, and for its checkpoints


class OtherNodes(Protocol):
    """The nodes of the cluster that a run joined; `every`: sampling interval in seconds."""

    every: float

    def beside(self, own: MachineSample, pids: Collection[int]) -> MachineSample:
        """A sample of this machine with these processes of the run, and of the other nodes."""


class Sampling:
    """A thread that appends samples to gpu.jsonl and passes them on. `guard` is from `FailureLog`."""

    def __init__(
        self,
        log: MachineLog,
        attempt: AttemptDir,
        disk: CheckpointDisk,
        visible: Collection[str] | None,
        guard: Guard,
        others: OtherNodes | None = None,
    ) -> None:
        self._others, self._attempt, self._disk = others, attempt, disk
        self._session, self._shared = RaySession.read(attempt.ray), Shared.read(attempt.shared) or Shared()
        self._log, self._visible, self._guard = log, visible, guard
        self._sampler: Sampler | None = None
        self._begun, self._ending = threading.Event(), threading.Event()
        self._driver: ProcessId | None = None
        self._run = ""
        self._pids: list[int] = []
        self._looked = self._measured = 0.0
        self._since = 0.0  # shared memory that changed later may be new
        self._latest: MachineSample | None = None
        self._sign = time.monotonic()
        self._thread = threading.Thread(target=self._work, name="sampling", daemon=True)
        self._thread.start()

    def sizes(self) -> dict[str, float]:
        """Memory of this machine in GiB, as `machine_sizes`; empty if NVML hangs."""
        self._begun.wait(_STARTS)
        return machine_sizes(self._sampler) if self._sampler is not None else {}

    def watch(self, driver: ProcessId, run: str) -> None:
        """Counts the processes of this driver as the run's from now on."""
        self._driver, self._run = driver, run

    def take(self) -> MachineSample | None:
        """The newest sample, once."""
        sample, self._latest = self._latest, None
        return sample

    @property
    def hangs(self) -> bool:
        """Whether the last sample is older than a minute."""
        return time.monotonic() - self._sign > _HANGS

    def close(self) -> None:
        """Takes a last sample, which shows the freed memory."""
        self._ending.set()
        self._thread.join(_ENDS)

    def _work(self) -> None:
        with self._guard("machine"):
            self._begin()
        while self._sampler is not None and not self._ending.wait(0.2):
            if self._log.due(self._others.every if self._others is not None else 1.0):
                with self._guard("machine"):
                    self._sample()
            self._sign = time.monotonic()
        if self._sampler is not None:
            with self._guard("machine"):
                self._sample()
            self._sampler.close()

    def _begin(self) -> None:
        self._sampler = Sampler(self._visible)
        self._begun.set()

    def _sample(self) -> None:
        assert self._sampler is not None
        if self._driver is not None and time.monotonic() - self._looked > _LOOKED:
            self._looked = time.monotonic()
            self._pids = [process.pid for process in run_members(self._driver, self._run)]
            # records the folder of the run's Ray, its shared memory and its sockets, for `clean`
            if self._session is None and (session := RaySession.of(self._pids)) is not None:
                self._session = session
                session.write(self._attempt.ray)
            now, shared = clock.now(), self._shared.grown(self._pids, self._since)
            self._since = now - _LOOKED  # files mapped after this look are found by the next one
            if shared is not self._shared:
                self._shared = shared
                shared.write(self._attempt.shared)
        driver, sampler = self._driver, self._sampler
        leader = driver.pid if driver and driver.here else None
        sample = sampler.sample(self._pids, leader) if driver else sampler.sample().of_unknown()
        if time.monotonic() - self._measured > _LOOKED:
            self._measured = time.monotonic()
            sample = self._disk.put_into(sample)
        if self._others is not None:
            sample = self._others.beside(sample, self._pids)
        self._log.add(sample)
        self._latest = sample


_EVERY = 10.0  # seconds; Ray's agents look every 5, and each answer has all processes of all nodes
_A_GPU = 0.2  # seconds more rarely; so gpu.jsonl grows by less than 1 kB/s, whatever the size of the cluster
_SHARE = 0.2  # maximum share of time spent waiting for a dashboard, without samples
_BEGINNING = 1 << 20  # bytes of a console in which Ray prints its address
# ray/_private/worker.py: init, with colors around the address
_CONNECTED = re.compile(
    rb"^[^\n(]* -- Connected to Ray cluster\.(?: View the dashboard at (?:\x1b\[\d*m)*([^\s\x1b]+))?", re.MULTILINE
)


def sampling(run: RunDir, attempt: AttemptDir, launch: LaunchRecord, guard: Guard) -> "Sampling | NodeSampling":
    """Starts sampling a run's machines: its cluster, if it has one. `guard` as in `Sampling`."""
    log, disk = MachineLog(run.machine), CheckpointDisk(run, launch.resume_step or 0)
    if launch.job is not None:
        return NodeSampling(log, launch.job.address)
    if ray_address(launch.keys) not in (None, "local"):  # there Ray gives the GPUs, whatever our shell names
        return Sampling(log, attempt, disk, None, guard, JoinedNodes(attempt.console))
    return Sampling(log, attempt, disk, visible({**os.environ, **launch.env}), guard)


class NodeSampling:
    """A thread that samples a cluster for gpu.jsonl and passes samples on, as `Sampling` does for this machine."""

    hangs = False  # the follower of the job reports a silent dashboard

    def __init__(self, log: MachineLog, address: str) -> None:
        self._log, self._cluster = log, Cluster(address)
        self._ending = threading.Event()
        self._latest: MachineSample | None = None
        threading.Thread(target=self._work, name="nodes", daemon=True).start()

    def sizes(self) -> dict[str, float]:
        """Empty: a start does not wait for a cluster."""
        return {}

    def take(self) -> MachineSample | None:
        """The newest sample, once."""
        sample, self._latest = self._latest, None
        return sample

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
    """The nodes of the cluster that a run joined, without the driver's; empty for a single node."""

    def __init__(self, console: Path) -> None:
        self.every = 1.0
        self._console = console
        self._cluster: Cluster | None = None
        self._found: MachineSample | None = None
        self._away: str | None = None
        self._next = 0.0

    def beside(self, own: MachineSample, pids: Iterable[int]) -> MachineSample:
        if time.monotonic() >= self._next:
            self._found = self._away = None
            self.every, pause, begun = 1.0, _EVERY, time.monotonic()
            try:
                self._cluster = self._cluster or dashboard(self._console, pids)
                self._found = MachineSample.of_cluster(own.t, self._cluster.nodes())
                pause = _pace(self._found)
                if len(self._found.nodes) > 1:
                    self.every = pause
            except UserError as error:
                self._away = f"the other nodes are not available: {error}"
            ended = time.monotonic()
            self._next = ended + max(pause, (ended - begun) / _SHARE)
        if self._found is None:
            return replace(own, away=self._away)
        return own.among(self._found, socket.gethostname()) if len(self._found.nodes) > 1 else own


def dashboard(console: Path, pids: Iterable[int]) -> Cluster:
    """The dashboard of the cluster that a run with these processes joined. Raises UserError with the missing part.

    Ray prints its address on connecting. Without `--dashboard-host` only the head can reach it; on another node this
    address is free or belongs to another Ray cluster.
    """
    try:
        with console.open("rb") as stream:
            connected = _CONNECTED.search(stream.read(_BEGINNING))
    except OSError:
        connected = None
    if connected is None:
        raise UserError("Ray has not printed which cluster it connected to")
    if connected[1] is None:
        raise UserError("the cluster has no dashboard")
    cluster = Cluster(connected[1].decode(errors="replace"))
    if cluster.session() != joined_session(pids):
        raise UserError(f"the dashboard at {cluster.url} belongs to another Ray cluster")
    return cluster


def _pace(cluster: MachineSample) -> float:
    return max(_EVERY, _A_GPU * len(cluster.gpus))
