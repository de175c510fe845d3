"""NVML without an NVIDIA GPU: the functions used by the sampler, over plain data."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest


class NVMLError(Exception):
    """The exception for a missing feature."""


@dataclass
class FakeGpu:
    """One device; None for unsupported values. `slices`: its MIG devices. Power in milliwatts."""

    uuid: str = "GPU-aaaa-1"
    name: str = "NVIDIA H200"
    used: int | None = 0
    total: int = 144 << 30
    reserved: int | None = 0
    util: int | None = 0
    power: int | None = 120_000
    limit: int | None = 700_000
    temp: int | None = 30
    slow_at: int | None = 87
    reasons: int | None = 0
    processes: "list[tuple[int, int | None]] | None" = field(default_factory=list)
    graphics: "list[tuple[int, int | None]]" = field(default_factory=list)
    slices: "list[FakeGpu]" = field(default_factory=list)
    lost: bool = False


_FIELDS = {  # what is asked, and the field of a GPU that answers
    "nvmlDeviceGetUUID": "uuid",
    "nvmlDeviceGetName": "name",
    "nvmlDeviceGetPowerUsage": "power",
    "nvmlDeviceGetEnforcedPowerLimit": "limit",
    "nvmlDeviceGetTemperature": "temp",
    "nvmlDeviceGetTemperatureThreshold": "slow_at",
    "nvmlDeviceGetCurrentClocksThrottleReasons": "reasons",
}


class FakeNvml:
    """Replaces the module `pynvml`."""

    NVMLError = NVMLError
    nvmlMemory_v2 = 0x02000028
    NVML_TEMPERATURE_GPU = 0
    NVML_TEMPERATURE_THRESHOLD_SLOWDOWN = 1

    def __init__(self, gpus: list[FakeGpu], broken: str | None = None) -> None:
        self.gpus, self.broken, self.open = gpus, broken, False

    def install(self, monkeypatch: pytest.MonkeyPatch) -> "FakeNvml":
        monkeypatch.setitem(__import__("sys").modules, "pynvml", self)
        return self

    def nvmlInit(self) -> None:
        if self.broken:
            raise NVMLError(self.broken)
        self.open = True

    def nvmlShutdown(self) -> None:
        self.open = False

    def nvmlDeviceGetCount(self) -> int:
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> FakeGpu:
        if self.gpus[index].lost:
            raise NVMLError("GPU is lost")
        return self.gpus[index]

    def nvmlDeviceGetMemoryInfo(self, gpu: FakeGpu, version: int | None = None) -> Any:
        told = {"reserved": _told(gpu.reserved)} if version == self.nvmlMemory_v2 else {}
        return SimpleNamespace(used=_told(gpu.used), total=gpu.total, **told)

    def nvmlDeviceGetUtilizationRates(self, gpu: FakeGpu) -> Any:
        return SimpleNamespace(gpu=_told(gpu.util))

    def __getattr__(self, name: str) -> Any:
        if (field := _FIELDS.get(name)) is None:
            raise AttributeError(name)
        return lambda gpu, *_: _told(getattr(gpu, field))

    def nvmlDeviceGetComputeRunningProcesses(self, gpu: FakeGpu) -> list[Any]:
        if gpu.processes is None:
            raise NVMLError("Not Supported")
        return [SimpleNamespace(pid=pid, usedGpuMemory=size) for pid, size in gpu.processes]

    def nvmlDeviceGetGraphicsRunningProcesses(self, gpu: FakeGpu) -> list[Any]:
        return [SimpleNamespace(pid=pid, usedGpuMemory=size) for pid, size in gpu.graphics]

    def nvmlDeviceGetMigMode(self, gpu: FakeGpu) -> tuple[int, int]:
        if not gpu.slices:
            raise NVMLError("Not Supported")
        return 1, 1

    def nvmlDeviceGetMaxMigDeviceCount(self, gpu: FakeGpu) -> int:
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(self, gpu: FakeGpu, index: int) -> FakeGpu:
        if index >= len(gpu.slices):
            raise NVMLError("Not Found")
        return gpu.slices[index]


def _told(value: Any) -> Any:
    if value is None:
        raise NVMLError("Not Supported")
    return value
