"""Memory of the machine: GPUs through NVML, the host through psutil.

Without NVML (no NVIDIA driver) the list of GPUs is empty and `Sampler.missing` says why.
"""

import contextlib
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

import psutil

_CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
_CGROUP_USED = Path("/sys/fs/cgroup/memory.current")
_CGROUP_STAT = Path("/sys/fs/cgroup/memory.stat")


class Sampler:
    """Takes memory samples. NVML is opened once and closed by `close`; no call raises."""

    def __init__(self, visible: Collection[str] | None = None) -> None:
        """`visible`: indices or UUIDs from CUDA_VISIBLE_DEVICES; None samples all devices."""
        self.missing: str | None = None
        self._nvml: Any = None
        self._devices: list[tuple[int, str, Any]] = []
        try:
            import pynvml

            pynvml.nvmlInit()
            self._nvml = pynvml
            for index in range(pynvml.nvmlDeviceGetCount()):
                handle = pynvml.nvmlDeviceGetHandleByIndex(index)
                if visible is None or {str(index), _text(pynvml.nvmlDeviceGetUUID(handle))} & set(visible):
                    self._devices.append((index, _text(pynvml.nvmlDeviceGetName(handle)), handle))
        except ImportError:
            self.missing = (
                "no GPU figures: the package nvidia-ml-py is not installed (pip install nvidia-ml-py)"
            )
        except Exception as error:  # NVML's errors are its own class, made at import
            self.missing = (
                f"no GPU figures: NVML does not start here ({error}); it comes with the NVIDIA driver"
            )

    @property
    def smallest_gpu(self) -> int | None:
        """Bytes of the smallest sampled GPU, None without one."""
        totals = [gpu["total"] for index, name, handle in self._devices
                  if (gpu := self._gpu(index, name, handle, ()))["total"]]  # fmt: skip
        return min(totals, default=None)

    def sample(self, pids: Collection[int] = ()) -> dict[str, Any]:
        """One line of gpu.jsonl: bytes, per cent, watts, °C. `pids` are the run's own processes."""
        used, total = host_memory()
        return {
            "t": round(time.time(), 2),
            "host": {"used": used, "total": total},
            "run": {"rss": _private(pids)},
            "gpus": [self._gpu(index, name, handle, pids) for index, name, handle in self._devices],
        }

    def _gpu(self, index: int, name: str, handle: Any, pids: Collection[int]) -> dict[str, Any]:
        nvml = self._nvml
        gpu: dict[str, Any] = {
            "index": index,
            "name": name,
            "used": None,
            "total": None,
            "util": None,
            "power": None,
        }
        gpu |= {"temp": None, "run_used": None}
        with contextlib.suppress(nvml.NVMLError):
            memory = nvml.nvmlDeviceGetMemoryInfo(handle)
            gpu["used"], gpu["total"] = int(memory.used), int(memory.total)
        with contextlib.suppress(nvml.NVMLError):
            gpu["util"] = int(nvml.nvmlDeviceGetUtilizationRates(handle).gpu)
        with contextlib.suppress(nvml.NVMLError):
            gpu["power"] = round(nvml.nvmlDeviceGetPowerUsage(handle) / 1000)
        with contextlib.suppress(nvml.NVMLError):
            gpu["temp"] = int(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU))
        with contextlib.suppress(nvml.NVMLError):
            processes = nvml.nvmlDeviceGetComputeRunningProcesses(handle)
            gpu["run_used"] = sum(int(p.usedGpuMemory or 0) for p in processes if p.pid in pids)
        return gpu

    def close(self) -> None:
        if self._nvml is not None:
            with contextlib.suppress(self._nvml.NVMLError):
                self._nvml.nvmlShutdown()


def host_memory() -> tuple[int, int]:
    """Used and total bytes of the machine, or of the container when it has less."""
    memory = psutil.virtual_memory()
    used, total = int(memory.total - memory.available), int(memory.total)
    with contextlib.suppress(OSError, ValueError):
        limit = int(_CGROUP_LIMIT.read_text())
        if limit < total:
            cache = next((int(line.split()[1]) for line in _CGROUP_STAT.read_text().splitlines()
                          if line.startswith("inactive_file ")), 0)  # fmt: skip
            return int(_CGROUP_USED.read_text()) - cache, limit
    return used, total


def _private(pids: Collection[int]) -> int:
    """Resident bytes that these processes share with nobody, so Ray's object store is left out."""
    total = 0
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            memory = psutil.Process(pid).memory_info()
            total += max(0, memory.rss - getattr(memory, "shared", 0))
    return total


def _text(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
