"""Samples of the machine: GPUs through NVML, the host through psutil.

Without NVML (no NVIDIA driver) the list of GPUs is empty and `Sampler.reason` says why.
"""

import contextlib
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from launcher.core import clock
from launcher.core.format import counted
from launcher.machine import gpu_holders
from launcher.machine.gpu_holders import Owner
from launcher.machine.host import Usage
from launcher.record.machine import GpuSample, Holder, MachineSample, ProcessesSample

_DETAILS = 10.0  # seconds between two samples that include limits and holders
_STACK = 25  # field of /proc/PID/stat after the name: the start of the stack
_SLOWED = {  # bits of NVML's reasons for lower clocks, without idling and set clocks
    0x04: "power limit",
    0x08: "hardware slowdown",
    0x20: "heat",
    0x40: "heat",
    0x80: "power brake",
}


VISIBLE = "CUDA_VISIBLE_DEVICES"


def visible(env: Mapping[str, str]) -> list[str] | None:
    """Devices in CUDA_VISIBLE_DEVICES; None if unset."""
    named = env.get(VISIBLE)
    return None if named is None else [part.strip() for part in named.split(",") if part.strip()]


@dataclass(frozen=True)
class _Device:
    """A GPU or MIG slice. A slice has its own memory and processes; the `whole` GPU has power and temperature."""

    index: int | str
    uuid: str
    name: str
    handle: Any
    whole: Any


def uuids(devices: Sequence[str] | None) -> tuple[str, ...]:
    """The UUIDs of the GPUs in CUDA_VISIBLE_DEVICES, in order; None: of all GPUs."""
    sampler = Sampler(devices)
    found = sampler.uuids
    sampler.close()
    words = found if devices is None else devices
    return tuple(
        found.get(word) or next((uuid for uuid in found.values() if uuid.startswith(word)), word) for word in words
    )


class Sampler:
    """Takes samples of the machine. NVML is opened once and closed by `close`; no call raises."""

    def __init__(self, visible: Collection[str] | None = None) -> None:
        """`visible`: indices or UUIDs from CUDA_VISIBLE_DEVICES; None samples all devices."""
        self.reason: str | None = None  # why there are no GPU metrics
        self._nvml: Any = None
        self._devices: list[_Device] = []
        self._detailed = 0.0
        self._usage = Usage()
        self._counted_twice = 0  # bytes
        self._owners: dict[int, Owner] = {}
        self._recorded: dict[int | str, dict[int, int | None]] = {}  # holders of a device as last recorded
        try:
            import pynvml

            pynvml.nvmlInit()
            self._nvml = pynvml
            count = pynvml.nvmlDeviceGetCount()
            for index in range(count):
                with contextlib.suppress(pynvml.NVMLError):  # a broken GPU does not hide others
                    self._devices += _slices(pynvml, index, visible)
            if not self._devices:
                why = f"CUDA_VISIBLE_DEVICES hides all {counted(count, 'GPU')}" if count else "NVML finds no GPU"
                self.reason = f"{why} here"
        except ImportError:
            self.reason = "the package nvidia-ml-py is not installed (pip install nvidia-ml-py)"
        except Exception as error:  # NVML's errors are its own class, made at import
            self.reason = (
                f"NVML does not start here ({error}); it comes with the NVIDIA driver, "
                "and a container must be started with access to GPUs (docker: --gpus all)"
            )

    @property
    def uuids(self) -> dict[str, str]:
        """UUIDs of the devices, shared by all containers of a machine, by local index."""
        return {str(device.index): device.uuid for device in self._devices}

    @property
    def smallest_gpu(self) -> int | None:
        """Bytes of the smallest sampled GPU, None without one."""
        totals = [total for device in self._devices if (total := self._memory(device)[1])]
        return min(totals, default=None)

    def sample(self, pids: Collection[int] = (), session: int | None = None) -> MachineSample:
        """Takes one sample.

        The run's own processes are `pids` and the members of the process session `session`. Limits, `holders` and
        `missing` seldom change: every ten seconds, a sample has them. Holders are also recorded when they change, or
        one takes or frees half a GiB: an engine in sleep mode frees most of a GPU within a second.
        """
        now = clock.now()
        detailed = now - self._detailed >= _DETAILS
        if detailed:
            self._detailed = now
            # a worker that outlives the driver is still of the run
            self._owners = {
                pid: who for pid, who in self._owners.items() if who.whose == "run" and psutil.pid_exists(pid)
            }
            self._counted_twice = _shared_by_forks(pids)
        return MachineSample(
            t=round(now, 2),
            host=self._usage.host(),
            run=ProcessesSample(max(0, _private(pids) - self._counted_twice), self._usage.run(pids)),
            gpus=tuple(self._gpu(device, pids, session, detailed) for device in self._devices),
            missing=f"no GPU metrics: {self.reason}" if detailed and self.reason else None,
        )

    def _gpu(self, device: _Device, pids: Collection[int], session: int | None, detailed: bool) -> GpuSample:
        nvml, handle, whole = self._nvml, device.handle, device.whole
        used, total = self._memory(device)
        values: dict[str, Any] = {}
        with contextlib.suppress(nvml.NVMLError):
            values["util"] = int(nvml.nvmlDeviceGetUtilizationRates(handle).gpu)
        with contextlib.suppress(nvml.NVMLError):
            values["power"] = round(nvml.nvmlDeviceGetPowerUsage(whole) / 1000)
        with contextlib.suppress(nvml.NVMLError):
            values["temp"] = int(nvml.nvmlDeviceGetTemperature(whole, nvml.NVML_TEMPERATURE_GPU))
        with contextlib.suppress(nvml.NVMLError):
            bits = int(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(whole))
            values["slowed"] = tuple(sorted({word for bit, word in _SLOWED.items() if bits & bit}))
        if detailed:
            with contextlib.suppress(nvml.NVMLError):  # part of `used` and `total`, available to no program
                values["reserved"] = int(nvml.nvmlDeviceGetMemoryInfo(handle, nvml.nvmlMemory_v2).reserved)
            with contextlib.suppress(nvml.NVMLError):
                values["power_limit"] = round(nvml.nvmlDeviceGetEnforcedPowerLimit(whole) / 1000)
            with contextlib.suppress(nvml.NVMLError):
                kind = nvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN
                values["slow_at"] = int(nvml.nvmlDeviceGetTemperatureThreshold(whole, kind))
        with contextlib.suppress(nvml.NVMLError):
            sizes = self._processes(handle)
            for pid in sizes.keys() - self._owners.keys():
                self._owners[pid] = gpu_holders.owner(
                    pid, lambda pid: pid in pids or gpu_holders.in_session(pid, session)
                )
            values["run_used"] = gpu_holders.run_share([(self._owners[pid], size) for pid, size in sizes.items()], used)
            known = self._recorded.get(device.index, {})
            if detailed or gpu_holders.differ(known, sizes):
                values["holders"] = tuple(Holder(pid, *self._owners[pid], used=size) for pid, size in sizes.items())
                self._recorded[device.index] = sizes
        return GpuSample(index=device.index, name=device.name, used=used, total=total, **values)

    def _memory(self, device: _Device) -> tuple[int | None, int | None]:
        """Used and total bytes."""
        with contextlib.suppress(self._nvml.NVMLError):
            memory = self._nvml.nvmlDeviceGetMemoryInfo(device.handle)
            return int(memory.used), int(memory.total)
        return None, None

    def _processes(self, handle: Any) -> dict[int, int | None]:
        """Bytes by pid, including a desktop's graphics."""
        processes = [*self._nvml.nvmlDeviceGetComputeRunningProcesses(handle)]
        with contextlib.suppress(self._nvml.NVMLError):
            processes += self._nvml.nvmlDeviceGetGraphicsRunningProcesses(handle)
        return {int(one.pid): None if one.usedGpuMemory is None else int(one.usedGpuMemory) for one in processes}

    def close(self) -> None:
        if self._nvml is not None:
            with contextlib.suppress(self._nvml.NVMLError):
                self._nvml.nvmlShutdown()


def _slices(nvml: Any, index: int, visible: Collection[str] | None) -> Iterator[_Device]:
    """A GPU or its MIG slices (`0:1`), as far as visible."""
    whole = nvml.nvmlDeviceGetHandleByIndex(index)
    uuid = _text(nvml.nvmlDeviceGetUUID(whole))
    shown = _shown(visible, index, uuid)
    sliced = False
    with contextlib.suppress(nvml.NVMLError):  # most GPUs do not support MIG
        sliced = nvml.nvmlDeviceGetMigMode(whole)[0] == 1
    if not sliced:
        if shown:
            yield _Device(index, uuid, _text(nvml.nvmlDeviceGetName(whole)), whole, whole)
        return
    for part in range(nvml.nvmlDeviceGetMaxMigDeviceCount(whole)):
        with contextlib.suppress(nvml.NVMLError):  # there may be fewer
            handle = nvml.nvmlDeviceGetMigDeviceHandleByIndex(whole, part)
            uuid = _text(nvml.nvmlDeviceGetUUID(handle))
            if shown or _shown(visible, None, uuid):
                yield _Device(f"{index}:{part}", uuid, _text(nvml.nvmlDeviceGetName(handle)), handle, whole)


def _shown(visible: Collection[str] | None, index: int | None, uuid: str) -> bool:
    """Whether CUDA_VISIBLE_DEVICES names a device, by index or by the beginning of its UUID."""
    return visible is None or any(
        word == str(index) or (word[:4] in ("GPU-", "MIG-") and uuid.startswith(word)) for word in visible
    )


def _shared_by_forks(pids: Collection[int]) -> int:
    """Bytes that `_private` counts repeatedly: pages shared by forks of one process (Linux only).

    A process forked without exec has its parent's stack address. The kernel walks all pages for the sum, so only such
    processes are read, every ten seconds.
    """
    forks, twice = defaultdict[str, list[Path]](list), 0
    for pid in pids:
        with contextlib.suppress(OSError, IndexError):
            process = Path("/proc", str(pid))
            forks[(process / "stat").read_text().rpartition(")")[2].split()[_STACK]].append(process)
    for process in (fork for group in forks.values() if len(group) > 1 for fork in group):
        with contextlib.suppress(OSError, KeyError, ValueError):
            lines = (line.split() for line in (process / "smaps_rollup").read_text().splitlines()[1:])
            size = {words[0]: int(words[1]) for words in lines}
            twice += 1024 * (size["Anonymous:"] - size["Pss_Anon:"])
    return twice


def _private(pids: Collection[int]) -> int:
    """Resident bytes of these processes without shared memory, such as Ray's object store."""
    total = 0
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            memory = psutil.Process(pid).memory_info()
            total += max(0, memory.rss - getattr(memory, "shared", 0))
    return total


def _text(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
