"""Changes to veRL 0.9.1 and torch that the CPU platform needs and veRL has no extension point for."""

import functools
import resource
import sys
from types import ModuleType
from typing import Any

import psutil
import torch
import torch.distributed

from .late import after_import

POLL = 0.1  # seconds


def apply() -> None:
    complete_torch_cpu()
    name_cpu_backend_once()
    keep_memory_unpinned()
    after_import("verl.trainer.ppo.v1.replay_buffer", poll_often)


def complete_torch_cpu() -> None:
    """veRL calls memory and random-state functions on every device module; torch.cpu lacks them."""
    functions = {
        "memory_allocated": _resident,
        "memory_reserved": _resident,
        "max_memory_allocated": _peak_resident,
        "max_memory_reserved": _peak_resident,
        "empty_cache": lambda: None,
        "get_rng_state": torch.get_rng_state,
        "set_rng_state": torch.set_rng_state,
    }
    for name, function in functions.items():
        if not hasattr(torch.cpu, name):
            setattr(torch.cpu, name, function)


def name_cpu_backend_once() -> None:
    """veRL asks for the backends "cpu:gloo,<device>:<backend>": the CPU twice, which torch refuses."""
    original = torch.distributed.init_process_group

    @functools.wraps(original)
    def init_process_group(backend: str | None = None, *args: Any, **kwargs: Any) -> None:
        original("cpu:gloo" if backend == "cpu:gloo,cpu:gloo" else backend, *args, **kwargs)

    torch.distributed.init_process_group = init_process_group


def keep_memory_unpinned() -> None:
    """The FSDP2 reference model is built with pinned memory, which needs an accelerator to pin for.

    veRL's engine takes the class from verl.utils.fsdp_utils when it is imported, which is after this.
    """
    from verl.utils import fsdp_utils

    pinned = fsdp_utils.CPUOffloadPolicy

    def unpinned(pin_memory: bool = False) -> Any:
        return pinned(pin_memory=False)

    fsdp_utils.CPUOffloadPolicy = unpinned


def poll_often(module: ModuleType) -> None:
    """Looks for finished rollouts every 0.1 s: veRL's 2 s are longer than a tiny model needs to answer."""
    buffer = module.ReplayBuffer
    buffer.__init__ = functools.partialmethod(buffer.__init__, poll_interval=POLL)  # type: ignore[assignment]


def _resident(_device: Any = None) -> int:
    """Bytes of this process in memory: what a device's allocator would have given out."""
    return psutil.Process().memory_info().rss


def _peak_resident(_device: Any = None) -> int:
    """The most bytes this process ever had in memory."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
