"""GPU samples from NVML's values during real runs on four GPUs."""

import gzip
import json
from pathlib import Path
from typing import Any

from launcher.record.machine import GpuSample, Holder, HostSample, MachineSample, ProcessesSample

GIB = 1 << 30
RECORDED = Path(__file__).parent.parent / "data" / "memory" / "nvml-4gpu.jsonl.gz"
NAMES = ["ray::WorkerDict", "VLLM::EngineCor", "python"]


def replayed(count: int) -> list[MachineSample]:
    """Samples of `count` GPUs, from NVML's values during real runs on four GPUs."""
    rows = [json.loads(line) for line in gzip.decompress(RECORDED.read_bytes()).splitlines()]
    begun, seconds = rows[0]["t"], {}
    for row in rows:
        seconds.setdefault(round((row["t"] - begun) / 4), {})[row["gpu"]] = row
    return [
        MachineSample(
            begun + 4 * k,
            HostSample((40 + k % 7) * GIB, 512 * GIB),
            ProcessesSample((12 + k % 5) * GIB),
            tuple(gpu(index, found[index % 4]) for index in range(count)),
        )
        for k, found in sorted(seconds.items())
        if len(found) == 4
    ]


def gpu(index: int, row: dict[str, Any]) -> GpuSample:
    return GpuSample(
        index,
        row["name"],
        row["used"],
        row["total"],
        row["util"],
        power=row["power"] // 1000,
        temp=row["temp"],
        run_used=sum(size for _, size in row["procs"]),
        power_limit=row["plimit"] // 1000,
        slow_at=87,
        holders=tuple(
            Holder(pid, "run", name, "ada", size) for (pid, size), name in zip(row["procs"], NAMES, strict=False)
        ),
    )
