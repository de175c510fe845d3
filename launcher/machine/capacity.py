"""The machine that a preset is checked for: this or an assumed one."""

import contextlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from launcher.core.errors import UserError
from launcher.core.format import GIB
from launcher.machine.host import host_memory
from launcher.machine.sampler import Sampler, visible
from launcher.record.machine import Holder

_CPU_MAX = Path("/sys/fs/cgroup/cpu.max")
_RESERVED = 0.00215  # and 0.3 GiB: the driver keeps 0.35 GiB of an RTX 4090 and 0.60 of an H200
_ASSUMED = re.compile(r"(?:(\d{1,4})x)?(\d{1,3})x(\d{1,4}(?:\.\d+)?)")


@dataclass(frozen=True)
class Gpu:
    """One GPU, in bytes as in NVML and nvidia-smi: `total` and `used` include the driver's `reserved` part.

    `others`: who uses memory there ("python (pid 4711)").
    """

    name: str
    total: int
    used: int
    others: tuple[str, ...] = ()
    reserved: int = 0

    @property
    def usable(self) -> int:
        """CUDA's total: the bytes for programs, to which vLLM's share applies."""
        return self.total - self.reserved


@dataclass(frozen=True)
class Machine:
    """GPUs, host memory in bytes, CPUs as Ray counts them.

    `assumed`: from `--assume`, without the checks of this machine (disk, CPUs, software). `nodes`: the GPUs belong to a
    cluster of this many machines with equal numbers of GPUs; None if unknown.
    """

    gpus: tuple[Gpu, ...]
    host_total: int
    host_available: int
    cpus: int
    assumed: bool
    nodes: int | None = None

    def emptied(self) -> "Machine":
        """This machine as if nothing used it."""
        gpus = tuple(replace(gpu, used=gpu.reserved, others=()) for gpu in self.gpus)
        return replace(self, gpus=gpus, host_available=self.host_total)


def assumed(text: str) -> Machine:
    """`4x24`: four GPUs of 24 GiB, all free; `2x8x80`: two machines with eight of 80 each. Raises UserError."""
    match = _ASSUMED.fullmatch(text.strip().lower())
    if match is None or (match[1] and not int(match[1])) or not int(match[2]) or float(match[3]) < 1:
        raise UserError(
            f"'{text}' is not a valid machine", "use GPUs x GiB per GPU, such as 1x24, or nodes x GPUs x GiB: 4x8x80"
        )
    nodes = int(match[1]) if match[1] else None
    total = int(float(match[3]) * GIB)
    gpu = Gpu(f"{match[3]} GiB GPU", total, 0, reserved=int(0.3 * GIB + _RESERVED * total))
    return Machine((gpu,) * int(match[2]) * (nodes or 1), 0, 0, 0, assumed=True, nodes=nodes)


def here(env: Mapping[str, str] = os.environ) -> Machine:
    """This machine now, with the GPUs that `env` gives to a run: 0.1 s, more with many GPUs."""
    used, total = host_memory()
    return Machine(_gpus(env), total, total - used, cpus(), assumed=False)


def cpus() -> int:
    """CPUs as Ray counts them: of the machine or the container, rounded down."""
    count = os.cpu_count() or 1
    with contextlib.suppress(OSError, ValueError):
        quota, period = _CPU_MAX.read_text().split()
        return int(float(quota) / float(period)) or count
    return count


def _gpus(env: Mapping[str, str]) -> tuple[Gpu, ...]:
    sampler = Sampler(visible(env))
    try:
        return tuple(
            Gpu(gpu.name, gpu.total or 0, gpu.used or 0, _others(gpu.holders or ()), gpu.reserved or 0)
            for gpu in sampler.sample().gpus
        )
    finally:
        sampler.close()


def _others(holders: Sequence[Holder]) -> tuple[str, ...]:
    """Users of a GPU's memory, largest first; may be unknown in a container."""
    ranked = sorted(holders, key=lambda each: -(each.used or 0))
    return tuple(f"{each.name} of {each.user} (pid {each.pid})" if each.name else f"pid {each.pid}" for each in ranked)
