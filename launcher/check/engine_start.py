"""Whether the rollout engine would start: its share is free, and has room for one row of the longest length."""

from collections.abc import Iterator

from launcher.check import rollout_memory
from launcher.check.finding import Finding, of_hardware
from launcher.check.memory import Estimate
from launcher.check.sizing import KV_CACHE, Plan
from launcher.check.subject import Subject
from launcher.core.format import GIB, gib
from launcher.verl.config import UTILISATION

_BUFFERS = GIB // 10  # what vLLM counts beside weights, its profile run and KV cache (0.07 GiB in its logs)


def free_share(subject: Subject, found: Estimate) -> Iterator[Finding]:
    """vLLM requires its whole share free at its start, even if its KV cache is set to a small size."""
    plan = found.plan
    if subject.machine.assumed or plan.utilisation is None or plan.of_free:
        return
    for index, gpu in enumerate(subject.machine.gpus[: subject.gpus]):
        trained = found.phases[0].gpu - rollout_memory.share(plan, found.gpu_total or 0)
        wanted = trained + rollout_memory.asked(plan, gpu.usable)
        if wanted <= gpu.usable and wanted > gpu.total - gpu.used:
            holders = f" (in use by {', '.join(gpu.others[:3])})" if gpu.others else ""
            message = (
                f"the engine cannot start: GPU {index} has {gib(gpu.total - gpu.used)} of {gib(gpu.total)} GiB free"
                f"{holders}, and models and engine need {gib(wanted)} GiB"
            )
            fix = "stop the processes on that GPU, or choose another one with CUDA_VISIBLE_DEVICES"
            yield of_hardware.error("FIT-3", message, fix, (UTILISATION,))


def longest_row(found: Estimate, total: int) -> Iterator[Finding]:
    """The engine does not start if one row of the longest length does not fit into its KV cache."""
    plan = found.plan
    if plan.utilisation is None or plan.of_free:
        return  # sglang takes what there is
    weights, token = rollout_memory.weights(plan), rollout_memory.kv_bytes(plan)
    room, wanted, shorter = _room(plan, total), token * plan.max_model_len, token * plan.longest
    if room - _work(plan) >= wanted:
        return
    fix, change = "use a smaller model, or more GPUs with rollout.tensor_model_parallel_size", None
    needed = (weights + shorter + _work(plan)) / total
    share = next((step / 20 for step in range(1, 19) if step / 20 > max(needed, plan.utilisation)), None)
    if plan.max_model_len > plan.longest and room - _work(plan) >= shorter:
        fix = f"set rollout.max_model_len to {plan.longest}, the longest prompt and response"
        change = {"rollout.max_model_len": plan.longest}
    elif plan.kv_cache is not None:
        fix = f"set it to at least {shorter} and rollout.max_model_len to {plan.longest}, or remove it"
    elif share:
        fix = f"set rollout.gpu_memory_utilization to {share:g} and rollout.max_model_len to {plan.longest}"
    row = f"one sequence of {plan.max_model_len} tokens needs {gib(wanted)} GiB of KV cache"
    finding = of_hardware.error if room < wanted else of_hardware.warning
    message = _short(plan, total, room, row)
    keys = (UTILISATION if plan.kv_cache is None else KV_CACHE, "actor_rollout_ref.rollout.max_model_len")
    yield finding("FIT-4", message, fix, keys, change)


def _short(plan: Plan, total: int, room: int, row: str) -> str:
    if plan.kv_cache is not None:
        return f"kv_cache_memory_bytes is {gib(room)} GiB, but {row}"
    share = f"the engine's share, {plan.utilisation:g} x {gib(total)} GiB,"
    if room <= 0:
        return f"{share} is less than its weights, {gib(rollout_memory.weights(plan))} GiB"
    work = f"about {gib(_work(plan))} GiB of working memory"
    return f"{share} leaves {gib(room)} GiB besides its weights, but {row} and {work}"


def row_room(found: Estimate) -> int:
    """Bytes left for KV cache in addition to the longest row; negative: the engine cannot start."""
    plan, total = found.plan, found.gpu_total
    if plan.utilisation is None or total is None:
        return 0
    return _room(plan, total) - rollout_memory.kv_bytes(plan) * plan.longest - _work(plan)


def _room(plan: Plan, total: int) -> int:
    """Bytes of the engine without its weights."""
    return rollout_memory.share(plan, total) - rollout_memory.weights(plan)


def _work(plan: Plan) -> int:
    """Bytes that must remain after the KV cache is taken; 0 if its size was given in bytes."""
    inside = plan.kv_cache is None and not plan.of_free
    return rollout_memory.profiled(plan) + _BUFFERS if inside else 0
