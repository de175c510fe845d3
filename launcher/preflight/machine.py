"""The machine that a preset is judged for: this one, or one that is assumed."""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from launcher.errors import UserError
from launcher.format import GIB
from launcher.gpu import Sampler, host_memory

_CPU_MAX = Path("/sys/fs/cgroup/cpu.max")
_ASSUMED = re.compile(r"(\d{1,3})x(\d{1,4}(?:\.\d+)?)")


@dataclass(frozen=True)
class Gpu:
    """One GPU; `total` and `used` in bytes. `others` says who holds memory there ("python (pid 4711)")."""

    name: str
    total: int
    used: int
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class Machine:
    """GPUs, host memory in bytes, CPUs as Ray counts them.

    `assumed`: from `--assume`; what only this machine can answer (disk, CPUs, software) is skipped.
    """

    gpus: tuple[Gpu, ...]
    host_total: int
    host_available: int
    cpus: int
    assumed: bool


def assumed(text: str) -> Machine:
    """`4x24`: four GPUs of 24 GiB, all free. Raises UserError."""
    match = _ASSUMED.fullmatch(text.strip().lower())
    if match is None or not int(match[1]) or not float(match[2]):
        raise UserError(f"'{text}' is no machine: write GPUs x GiB of each, such as 1x24")
    gpu = Gpu(f"{match[2]} GiB GPU", int(float(match[2]) * GIB), 0)
    return Machine((gpu,) * int(match[1]), 0, 0, 0, assumed=True)


def here() -> Machine:
    """This machine as it is now: 0.1 s, more with many GPUs."""
    used, total = host_memory()
    return Machine(_gpus(), total, total - used, cpus(), assumed=False)


def cpus() -> int:
    """CPUs that Ray will count: those of the machine, or what the container may use, rounded down."""
    count = os.cpu_count() or 1
    with contextlib.suppress(OSError, ValueError):
        quota, period = _CPU_MAX.read_text().split()
        return int(float(quota) / float(period)) or count
    return count


def _gpus() -> tuple[Gpu, ...]:
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    visible = None if chosen is None else {part.strip() for part in chosen.split(",") if part.strip()}
    sampler = Sampler(visible)
    try:
        owners = _owners()
        return tuple(
            Gpu(gpu["name"], gpu["total"] or 0, gpu["used"] or 0, owners.get(gpu["index"], ()))
            for gpu in sampler.sample()["gpus"]
        )
    finally:
        sampler.close()


def _owners() -> dict[int, tuple[str, ...]]:
    """Who holds memory on each GPU, the largest first."""
    found: dict[int, tuple[str, ...]] = {}
    with contextlib.suppress(Exception):  # NVML's errors are its own class, made at import
        import pynvml

        for index in range(pynvml.nvmlDeviceGetCount()):
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            processes: list[Any] = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
            processes.sort(key=lambda process: -(process.usedGpuMemory or 0))
            found[index] = tuple(_owner(process.pid) for process in processes)
    return found


def _owner(pid: int) -> str:
    try:
        process = psutil.Process(pid)
        return f"{process.name()} of {process.username()} (pid {pid})"
    except psutil.Error:
        return f"pid {pid}"
