"""veRL's platform "cpu": all of PPO on the host, for machines without a GPU.

Ray's resource "GPU" only counts worker slots here, so a run starts Ray with one per worker:
`+ray_kwargs.ray_init.num_gpus=1`. Needs `strategy=fsdp2` (FSDP1 cannot shard on a CPU) and `rollout.name=hf`. Functions
of veRL 0.9.1 and torch without an extension point are replaced.
"""

import functools
import os
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import psutil
import torch
import torch.distributed
from verl.plugin.platform import PlatformBase, PlatformRegistry

from .. import fork_server
from . import weights
from .late import after_import


def install() -> None:
    """Registers the platform, the rollout engine "hf" and the checkpoint engine "gloo" with veRL."""
    from verl.workers.rollout.base import _ROLLOUT_REGISTRY
    from verl.workers.rollout.replica import RolloutReplicaRegistry

    complete_torch_cpu()
    name_cpu_backend_once()
    keep_memory_unpinned()
    PlatformRegistry.register(platform="cpu")(CpuPlatform)
    # veRL registers its FSDP engine for "cuda" and "npu" alone; with this variable of its own one can choose.
    os.environ.setdefault("VERL_ENGINE_DEVICE", "cuda")
    _ROLLOUT_REGISTRY["hf", "async"] = f"{__package__}.rollout.HFAdapter"
    RolloutReplicaRegistry.register("hf", _load_replica)
    after_import(weights.MODULE, weights.register)
    fork_server.install()


def _load_replica() -> type:
    from .rollout import HFReplica

    return HFReplica


class CpuPlatform(PlatformBase):
    """The host as veRL's device: one device, no allocator, no kernels to wait for, no profiler."""

    device_name = "cpu"
    vendor_name = "cpu"
    device_module: ModuleType = torch.cpu  # veRL compares with torch.cpu where it counts FLOPs and memory

    def is_available(self) -> bool:
        return True

    def current_device(self) -> torch.device:
        return torch.device("cpu")

    def device_count(self) -> int:
        return 1

    def set_device(self, device_index: int) -> None:
        pass

    def synchronize(self, device_index: int | None = None) -> None:
        pass

    def manual_seed(self, seed: int) -> None:
        torch.manual_seed(seed)

    def manual_seed_all(self, seed: int) -> None:
        torch.manual_seed(seed)

    def set_allocator_settings(self, settings: str) -> None:
        pass

    def empty_cache(self) -> None:
        pass

    def get_device_capability(self, device_index: int = 0) -> tuple[None, None]:
        return None, None

    def communication_backend_name(self) -> str:
        return "gloo"

    def visible_devices_envvar(self) -> str:
        return "CUDA_VISIBLE_DEVICES"  # Ray's variable for its resource "GPU"

    @contextmanager
    def nvtx_range(self, msg: str) -> Iterator[None]:
        yield

    def profiler_start(self) -> None:
        pass

    def profiler_stop(self) -> None:
        pass

    def ray_resource_name(self) -> str:
        return "GPU"

    def ray_noset_envvars(self) -> list[str]:
        return ["RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES"]

    def is_ipc_supported(self) -> bool:
        return False

    def cudart(self) -> Any:
        return None


def complete_torch_cpu() -> None:
    """Adds memory and random-state functions to torch.cpu, which veRL calls on every device module."""
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
    """Fixes the backends "cpu:gloo,<device>:<backend>", which name the CPU twice, so that torch refuses them."""
    original = torch.distributed.init_process_group

    @functools.wraps(original)
    def init_process_group(backend: str | None = None, *args: Any, **kwargs: Any) -> None:
        original("cpu:gloo" if backend == "cpu:gloo,cpu:gloo" else backend, *args, **kwargs)

    torch.distributed.init_process_group = init_process_group


def keep_memory_unpinned() -> None:
    """Builds the FSDP2 reference model without pinned memory, which needs an accelerator.

    veRL's engine takes the class from verl.utils.fsdp_utils when it is imported, which is after this.
    """
    from verl.utils import fsdp_utils

    pinned = fsdp_utils.CPUOffloadPolicy

    def unpinned(pin_memory: bool = False) -> Any:
        return pinned(pin_memory=False)

    fsdp_utils.CPUOffloadPolicy = unpinned


def _resident(_device: Any = None) -> int:
    """Resident bytes of this process, instead of the bytes of a device's allocator."""
    return psutil.Process().memory_info().rss


def _peak_resident(_device: Any = None) -> int:
    """Peak resident bytes of this process."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
