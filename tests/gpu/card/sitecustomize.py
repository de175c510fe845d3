"""A smaller GPU on a larger one. `tuned.py` puts this folder into PYTHONPATH, so every Python process reads it.

To the processes with the same `CARD_LANE`, their GPU has `CARD_MIB` MiB, and only they use it: `mem_get_info` of torch
and NVML say so. Two such cards share a GPU that has the memory of both. torch may not take more than such a card has,
and what processes take together is counted by their samples.
"""

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

CARD, LANE = int(os.environ.get("CARD_MIB", "0")) << 20, os.environ.get("CARD_LANE", "")
RESERVED = 355 << 20  # of an RTX 4090, by its driver
KEPT = 2 << 30  # of a card: the engine while it sleeps, and the contexts
_MARK = f"CARD_LANE={LANE}".encode()


def _loaded(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)  # NVML's own code looks for itself there
    spec.loader.exec_module(module)
    return module


def _nvml() -> Any:
    """NVML with the functions of its own: vLLM brings a copy of the module."""
    if "_card_nvml" not in sys.modules:
        found = importlib.util.find_spec("pynvml")
        path = found.origin if found and found.origin else f"{os.environ['KIT']}/site/vllm/third_party/pynvml.py"
        _loaded("_card_nvml", Path(path)).nvmlInit()
    return sys.modules["_card_nvml"]


def _ours(pid: int) -> bool:
    try:
        return _MARK in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


def held(handle: Any) -> int:
    """Bytes that processes of this lane hold of a GPU."""
    processes = _nvml().nvmlDeviceGetComputeRunningProcesses(handle)
    return sum(int(each.usedGpuMemory or 0) for each in processes if _ours(each.pid))


def smaller_nvml(module: ModuleType) -> None:
    def memory(handle: Any, version: Any = None) -> SimpleNamespace:
        used = RESERVED + held(_nvml().nvmlDeviceGetHandleByUUID(module.nvmlDeviceGetUUID(handle)))
        total = RESERVED + CARD
        return SimpleNamespace(total=total, used=used, free=max(0, total - used), reserved=RESERVED)

    module.nvmlDeviceGetMemoryInfo = memory


def smaller_torch(module: ModuleType) -> None:
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]

    def mem_get_info(device: Any = None) -> tuple[int, int]:
        return max(0, CARD - held(_nvml().nvmlDeviceGetHandleByIndex(int(visible or 0)))), CARD

    whole, choose = module.mem_get_info, module.set_device

    def set_device(device: Any) -> None:
        """By trainers and engines alone: a limit set in other processes gave each of them 518 MiB of the GPU."""
        choose(device)
        module.set_per_process_memory_fraction((CARD - KEPT) / whole()[1])

    module.mem_get_info, module.set_device = mem_get_info, set_device


if CARD:
    app = Path(os.environ["PPO_TUI"]).parents[1]
    late = next(app.glob("lib/python3*/site-packages/launcher/inside/*/plugin/late.py"))
    after_import = _loaded("_card_late", late).after_import
    after_import("pynvml", smaller_nvml)
    after_import("torch.cuda", smaller_torch)
