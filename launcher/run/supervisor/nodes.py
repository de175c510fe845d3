"""Samples of the nodes of a cluster, for a run that is a job of it: its dashboard tells them every few seconds."""

import os
import threading
from collections.abc import Callable

from launcher import clock
from launcher.errors import UserError
from launcher.gpu import visible
from launcher.jobs import Cluster
from launcher.record.attempt import LaunchRecord
from launcher.record.layout import AttemptDir, RunDir
from launcher.record.machine import MachineSample
from launcher.run.supervisor.disk import MachineLog
from launcher.run.supervisor.sampling import Sampling

_EVERY = 10.0  # seconds; Ray's agents look every 5, and each answer has all processes of all nodes
_A_GPU = 0.2  # seconds more rarely; so gpu.jsonl grows by less than 1 kB/s, whatever the size of the cluster


def sampling(
    run: RunDir, attempt: AttemptDir, launch: LaunchRecord, guard: Callable[[Callable[[float], object]], None]
) -> "Sampling | NodeSampling":
    """What samples the machines of a run: a job has those of its cluster. `guard` is that of `Sampling`."""
    log = MachineLog(run.machine)
    if launch.job is not None:
        return NodeSampling(log, launch.job.address)
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
            if self._ending.wait(max(_EVERY, _A_GPU * len(sample.gpus))):
                return
