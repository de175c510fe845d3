"""The checklist of a run: its limits, its machine, and the steps of earlier attempts."""

from collections.abc import Callable, Mapping
from typing import Any

from launcher.gpu import Sampler, host_memory
from launcher.health.checklist import Checklist
from launcher.metrics.records import StepRecord
from launcher.run.directory import RunDir

_GB = 1 << 30


def checklist_maker(info: Mapping[str, Any], sampler: Sampler | None) -> Callable[[Mapping[str, Any]], Checklist]:
    """Makes checklists for a run: live with a sampler, without one for a log from elsewhere."""
    settings = (info.get("preset") or {}).get("health") or {}
    gpu = sampler.smallest_gpu if sampler else None
    host = host_memory()[1] / _GB if sampler else None

    def make(keys: Mapping[str, Any]) -> Checklist:
        return Checklist(
            config=keys, settings=settings, gpu_total_gb=gpu / _GB if gpu else None, host_total_gb=host,
            clock=sampler is not None,
        )  # fmt: skip

    return make


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
