"""Samples of the machine, taken beside the loop that obeys: NVML and network disks may hang for minutes."""

import threading
import time
from collections.abc import Collection
from pathlib import Path
from typing import Protocol

from launcher.machine.sampler import Sampler
from launcher.record.machine import MachineSample
from launcher.record.process import ProcessId, run_members
from launcher.record.ray_session import RaySession
from launcher.runs.supervise.disk import MachineLog
from launcher.runs.supervise.failures import Guard
from launcher.runs.watch.run_checklist import machine_sizes

_STARTS = 5.0  # seconds that NVML may take to start before a run is started without it
_ENDS = 3.0  # seconds that the last sample may take
_HANGS = 60.0  # seconds without a sample that are told
_LOOKED = 10.0  # seconds between two looks for the run's processes: a scan of /proc


class OtherNodes(Protocol):
    """The nodes of the cluster that a run has joined; `every` is how many seconds lie between two samples of them."""

    every: float

    def beside(self, own: MachineSample, pids: Collection[int]) -> MachineSample:
        """A sample of this machine, where the run has these processes, completed by the others."""


class Sampling:
    """A thread that appends samples to gpu.jsonl and hands them over. `guard` is that of `FailureLog`."""

    def __init__(
        self,
        log: MachineLog,
        ray: Path,
        visible: Collection[str] | None,
        guard: Guard,
        others: OtherNodes | None = None,
    ) -> None:
        """`ray` is where the folder of the run's Ray is noted."""
        self._others = others
        self._ray, self._session = ray, RaySession.read(ray)
        self._log, self._visible, self._guard = log, visible, guard
        self._sampler: Sampler | None = None
        self._begun, self._ending = threading.Event(), threading.Event()
        self._driver: ProcessId | None = None
        self._run = ""
        self._pids: list[int] = []
        self._looked = 0.0
        self._latest: MachineSample | None = None
        self._sign = time.monotonic()
        self._thread = threading.Thread(target=self._work, name="sampling", daemon=True)
        self._thread.start()

    def sizes(self) -> dict[str, float]:
        """Memory of this machine in GiB, as `machine_sizes`; empty where NVML hangs."""
        self._begun.wait(_STARTS)
        return machine_sizes(self._sampler) if self._sampler is not None else {}

    def watch(self, driver: ProcessId, run: str) -> None:
        """The processes of this run are its own from now on."""
        self._driver, self._run = driver, run

    def take(self) -> MachineSample | None:
        """The newest sample, once."""
        found, self._latest = self._latest, None
        return found

    @property
    def hangs(self) -> bool:
        """Whether there has been no sample for a minute."""
        return time.monotonic() - self._sign > _HANGS

    def close(self) -> None:
        """Takes a last sample, which shows that the memory came back."""
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
            if self._session is None and (found := RaySession.of(self._pids)) is not None:
                self._session = found
                found.write(self._ray)
        sample = self._sampler.sample(self._pids, self._driver.pid if self._driver else None)
        if self._others is not None:
            sample = self._others.beside(sample, self._pids)
        self._log.add(sample)
        self._latest = sample
