"""The checklist of a run: its limits, its machine, and the steps of earlier attempts."""

from collections.abc import Callable, Mapping
from typing import Any

from launcher.format import GIB
from launcher.gpu import Sampler, host_memory
from launcher.health.checklist import Checklist
from launcher.metrics.records import StepRecord, parse_object
from launcher.record.layout import RunDir
from launcher.run.reading.source import records


def checklist_maker(
    info: Mapping[str, Any], sizes: Mapping[str, float], *, clock: bool = False
) -> Callable[[Mapping[str, Any]], Checklist]:
    """Makes checklists for a run with these memory sizes; `clock`: it is live, so silence can be judged."""
    settings = (info.get("preset") or {}).get("health") or {}

    def make(keys: Mapping[str, Any]) -> Checklist:
        return Checklist(
            config=keys,
            settings=settings,
            gpu_total_gb=sizes.get("gpu_total_gb"),
            host_total_gb=sizes.get("host_total_gb"),
            clock=clock,
        )

    return make


def machine_sizes(sampler: Sampler) -> dict[str, float]:
    """Memory of this machine in GiB, as the checklist wants it."""
    sizes = {"host_total_gb": host_memory()[1] / GIB}
    if gpu := sampler.smallest_gpu:
        sizes["gpu_total_gb"] = gpu / GIB
    return sizes


def recorded_sizes(run: RunDir) -> dict[str, float]:
    """Memory of the run's machine in GiB, from its first sample; empty without one."""
    sample = (parse_object(next(records(run.memory), b"")) if run.memory.exists() else None) or {}
    totals = {
        "host_total_gb": [(sample.get("host") or {}).get("total")],
        "gpu_total_gb": [gpu.get("total") for gpu in sample.get("gpus") or []],
    }
    known = {name: [total for total in found if total] for name, found in totals.items()}
    return {name: min(found) / GIB for name, found in known.items() if found}


def earlier_steps(run: RunDir, attempt: int, resume_step: int | None) -> list[StepRecord]:
    """Steps of the attempts before `attempt`, up to the checkpoint that it continues from."""
    if resume_step is None:
        return []
    kept: dict[int, StepRecord] = {}
    for number in run.attempt_numbers():
        if number < attempt and run.attempt(number).steps.exists():
            for line in run.attempt(number).steps.read_bytes().splitlines():
                record = StepRecord.from_line(line)
                if record is not None and record.step <= resume_step:
                    kept[record.step] = record
    return [kept[step] for step in sorted(kept)]
