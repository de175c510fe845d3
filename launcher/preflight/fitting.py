"""Does it fit, and which single change would make it fit?"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from launcher.errors import UserError
from launcher.format import GIB, gib
from launcher.preflight import models, rollout_memory
from launcher.preflight.finding import Finding
from launcher.preflight.memory import Estimate, Phase, estimate
from launcher.preflight.sizing import Plan
from launcher.preflight.subject import Subject
from launcher.preset import versions
from launcher.preset.schema import FIELDS

_UTILISATION = "actor_rollout_ref.rollout.gpu_memory_utilization"
_KV_CACHE = "actor_rollout_ref.rollout.engine_kwargs.vllm.kv_cache_memory_bytes"
_MODEL = "actor_rollout_ref.model.path"
ENGINE_WORK = GIB  # what vLLM needs beside weights and KV cache: its own activations and buffers

ROWS = (
    "actor.ppo_micro_batch_size_per_gpu",
    "rollout.log_prob_micro_batch_size_per_gpu",
    "ref.log_prob_micro_batch_size_per_gpu",
)

Change = Mapping[str, Any]
"""Preset field -> value."""


def checks(subject: Subject) -> Iterable[Finding]:
    """Everything about memory."""
    found = estimate(subject)
    if found is None and models.is_toy(str(subject.value(_MODEL))):
        return  # not made yet, and small
    if found is None:
        yield Finding(
            "FIT-0", "hardware", "info", (_MODEL,),
            f"nothing is known about the size of {subject.value(_MODEL)}: its memory cannot be estimated",
            "download the model first, or give the folder that holds it",
        )  # fmt: skip
        return
    yield from _host(subject, found)
    if found.gpu_total is not None and not subject.cpu:
        yield from _phases(subject, found, found.gpu_total)
        yield from _start(subject, found)
        yield from _cache(subject, found, found.gpu_total)


def _phases(subject: Subject, found: Estimate, total: int) -> Iterator[Finding]:
    """One error or one warning, for the phase that is worst."""
    surely = max(found.phases, key=lambda phase: phase.gpu)
    # what a new run lacks comes before what is too much after a resume only
    likely = max(found.phases, key=lambda phase: (phase.gpu_fresh > total, phase.gpu_high))
    if surely.gpu > total:
        change, fix = _what_helps(subject, certain=True)
        yield Finding(
            "FIT-1", "hardware", "error", _keys(surely),
            f"phase '{surely.name}' needs at least {gib(surely.gpu)} GiB of the {gib(total)} GiB that "
            "programs can have of the GPU: "
            f"{_sum(surely, certain=True)}",
            fix, change,
        )  # fmt: skip
    elif likely.gpu_high > total:
        change, fix = _what_helps(subject, certain=False)
        yield Finding(
            "FIT-2", "hardware", "warning", _keys(likely),
            f"phase '{likely.name}' may need {gib(likely.gpu)} to {gib(likely.gpu_high)} GiB of the "
            f"{gib(total)} GiB that programs can have of the GPU{_when(likely, total)}: "
            f"{_sum(likely, certain=False)}",
            fix, change,
        )  # fmt: skip


def _start(subject: Subject, found: Estimate) -> Iterator[Finding]:
    """vLLM wants its whole share free at its start, even where its KV cache is told to be small."""
    plan = found.plan
    if subject.machine.assumed or plan.utilisation is None:
        return
    for index, gpu in enumerate(subject.machine.gpus[: subject.gpus]):
        trained = found.phases[0].gpu - rollout_memory.share(plan, found.gpu_total or 0)
        wanted = trained + rollout_memory.asked(plan, gpu.usable)
        if wanted <= gpu.usable and wanted > gpu.total - gpu.used:
            holders = f", held by {', '.join(gpu.others[:3])}" if gpu.others else ""
            yield Finding(
                "FIT-3", "hardware", "error", (_UTILISATION,),
                f"the engine will not start: GPU {index} has {gib(gpu.total - gpu.used)} GiB free of "
                f"{gib(gpu.total)}{holders}, and models and engine take {gib(wanted)} GiB there",
                "end what holds the GPU, or choose another one with CUDA_VISIBLE_DEVICES",
            )  # fmt: skip


def _cache(subject: Subject, found: Estimate, total: int) -> Iterator[Finding]:
    """The engine refuses to start when not even one row of the longest length fits into its KV cache."""
    plan = found.plan
    if plan.utilisation is None:
        return
    weights, token = rollout_memory.weights(plan), rollout_memory.kv_bytes(plan)
    room, wanted, shorter = _room(plan, total), token * plan.max_model_len, token * plan.longest
    if room - _work(plan) >= wanted:
        return
    fix, change = "use a smaller model, or more GPUs with rollout.tensor_model_parallel_size", None
    needed = (weights + shorter + ENGINE_WORK) / total
    share = next((step / 20 for step in range(1, 19) if step / 20 > max(needed, plan.utilisation)), None)
    if plan.max_model_len > plan.longest and room - _work(plan) >= shorter:
        fix = f"set rollout.max_model_len to {plan.longest}, the longest prompt and response"
        change = {"rollout.max_model_len": plan.longest}
    elif plan.kv_cache is not None:
        fix = f"make it at least {shorter}, and rollout.max_model_len {plan.longest}; or take it out"
    elif share:
        fix = f"set rollout.gpu_memory_utilization to {share:g} and rollout.max_model_len to {plan.longest}"
    row = f"one row of {plan.max_model_len} tokens needs {gib(wanted)} GiB of KV cache"
    yield Finding(
        "FIT-4", "hardware", "error" if room < wanted else "warning",
        (_UTILISATION if plan.kv_cache is None else _KV_CACHE, "actor_rollout_ref.rollout.max_model_len"),
        f"the engine's share, {plan.utilisation:g} x {gib(total)} GiB, leaves {gib(max(0, room))} GiB beside "
        f"its weights, and {row} and about {gib(ENGINE_WORK)} GiB to work in"
        if plan.kv_cache is None
        else f"kv_cache_memory_bytes is {gib(room)} GiB, and {row}",
        fix, change,
    )  # fmt: skip


def _host(subject: Subject, found: Estimate) -> Iterator[Finding]:
    """Ray kills workers when the machine's memory is 95 % full."""
    machine = subject.machine
    if machine.assumed or not machine.host_total:
        return
    parts = ", ".join(f"{part.label} {gib(part.bytes)}" for part in found.host_parts)
    keys = (
        "actor_rollout_ref.actor.fsdp_config.param_offload",
        "actor_rollout_ref.rollout.agent.num_workers",
    )
    if _beyond_host(subject, found):
        yield Finding(
            "FIT-5", "hardware", "error", keys,
            f"host memory: at least {gib(found.host)} GiB are needed of {gib(machine.host_total)} ({parts})",
            "offload less (param_offload, optimizer_offload, offload_policy), or use a smaller model",
        )  # fmt: skip
    elif found.host_high > machine.host_available:
        yield Finding(
            "FIT-6", "hardware", "warning", keys,
            f"host memory: up to {gib(found.host_high)} GiB may be needed, {gib(machine.host_available)} are "
            f"available ({parts})",
            "fewer processes: rollout.agent_workers=1, reward.workers=1, data.dataloader_num_workers=0",
            {"rollout.agent_workers": 1, "reward.workers": 1, "data.dataloader_num_workers": 0},
        )  # fmt: skip


def _beyond_host(subject: Subject, found: Estimate) -> bool:
    """Whether the host certainly lacks the memory; not known of an assumed machine."""
    return 0 < subject.machine.host_total * 0.95 < found.host


def _what_helps(subject: Subject, *, certain: bool) -> tuple[Change | None, str]:
    """The first single change with which everything is likely to fit, else (`certain`) may fit at all."""
    second: tuple[Change, Estimate] | None = None
    for change in candidates(subject):
        found = estimate(changed(subject, change))
        if found is None or found.gpu_total is None or _row_room(found) < 0 or _beyond_host(subject, found):
            continue
        if all(phase.gpu_high <= found.gpu_total for phase in found.phases):
            cheaper = f"; {setting(second[0])} alone may do" if second else ""
            return change, f"{setting(change)} makes it fit: {_range(found)}{cheaper}"
        if certain and second is None and all(phase.gpu <= found.gpu_total for phase in found.phases):
            second = change, found
    if second is not None:
        return second[0], f"{setting(second[0])} may make it fit: {_range(second[1])}"
    return None, (
        "no single change is enough: use more GPUs, a smaller model or LoRA (model.lora_rank=16), or shorter "
        "micro-batches with actor.strategy=fsdp2, actor.offload_policy and critic.offload_policy"
    )


def _row_room(found: Estimate) -> int:
    """Bytes left for KV cache beside the longest row; negative: the engine cannot start."""
    plan, total = found.plan, found.gpu_total
    if plan.utilisation is None or total is None:
        return 0
    return _room(plan, total) - rollout_memory.kv_bytes(plan) * plan.longest - _work(plan)


def _room(plan: Plan, total: int) -> int:
    """Bytes of the engine beside its weights."""
    return rollout_memory.share(plan, total) - rollout_memory.weights(plan)


def _work(plan: Plan) -> int:
    """What has to be left of them when the KV cache is taken: nothing where that was given in bytes."""
    return ENGINE_WORK if plan.kv_cache is None else 0


def candidates(subject: Subject) -> Iterator[Change]:
    """What one would try, the cheapest first: each is one decision, for actor and critic at once."""
    found = estimate(subject)
    assert found is not None
    plan = found.plan
    if plan.utilisation is not None and found.gpu_total:
        for step in range(int(plan.utilisation * 20 - 1e-9), 1, -1):
            yield {"rollout.gpu_memory_utilization": step / 20}
    if not plan.sleeps:
        yield {"rollout.free_cache_engine": True}
    if not plan.checkpointing:
        yield {"model.enable_gradient_checkpointing": True}
    yield from _smaller(subject, plan.longest)
    if not subject.value("actor_rollout_ref.model.use_remove_padding", False):
        yield {"model.use_remove_padding": True}
    both = [name for name, model in (("actor", plan.actor), ("critic", plan.critic)) if model]
    for keys in (("optimizer_offload",), ("param_offload", "optimizer_offload")):
        yield {f"{name}.{key}": True for name in both for key in keys}
    yield {"actor.strategy": "fsdp2", **{f"{name}.offload_policy": True for name in both}}


def _smaller(subject: Subject, longest: int) -> Iterator[Change]:
    """Smaller micro-batches: halves of the present ones, not below one row."""
    if subject.value("actor_rollout_ref.actor.use_dynamic_bsz", False):
        fields = ("actor.ppo_max_token_len_per_gpu", "critic.ppo_max_token_len_per_gpu")
        tokens = subject.value(FIELDS[fields[0]].key)
        while isinstance(tokens, int) and tokens // 2 >= longest:
            tokens //= 2
            yield dict.fromkeys(fields, tokens)
        return
    sizes = {field: subject.value(FIELDS[field].key) for field in ROWS}
    rows = {field: size for field, size in sizes.items() if isinstance(size, int) and size > 1}
    while any(size > 1 for size in rows.values()):
        rows = {field: max(1, size // 2) for field, size in rows.items()}
        yield dict(rows)


def changed(subject: Subject, change: Change) -> Subject:
    """The subject with preset fields set, and with those that follow them."""
    keys = dict(subject.keys)
    for field, value in change.items():
        for spec in FIELDS.values():
            follows = (
                spec.follows == field
                and getattr(getattr(subject.loaded.preset, spec.path[0]), spec.path[-1]) is None
            )
            if spec.key and (spec.name == field or follows):
                try:
                    keys[versions.at(spec.key, subject.version)] = value
                except UserError:
                    continue
    return dataclasses.replace(subject, keys=keys)


def _sum(phase: Phase, *, certain: bool) -> str:
    parts = [part for part in phase.parts if part.bytes and (part.certain or not certain)]
    return " + ".join(f"{part.label} {gib(part.bytes)}" for part in parts)


def _when(phase: Phase, total: int) -> str:
    """What the upper end supposes."""
    if phase.gpu_fresh <= total:
        return f" in the first step after a resume ({gib(phase.gpu_fresh)} in others)"
    always = phase.name in ("engine start", "rollout", "weights to engine", "checkpoint")
    return "" if always else ", when its micro-batches are full of the longest rows"


def _keys(phase: Phase) -> tuple[str, ...]:
    """The veRL keys that a phase is decided by."""
    actor = "actor_rollout_ref.actor"
    if phase.name in ("engine start", "rollout"):
        return _UTILISATION, f"{actor}.fsdp_config.param_offload", f"{actor}.fsdp_config.optimizer_offload"
    if phase.name == "weights to engine":
        return ("actor_rollout_ref.rollout.checkpoint_engine.update_weights_bucket_megabytes",)
    if phase.name == "update critic":
        return "critic.ppo_infer_max_token_len_per_gpu", "critic.fsdp.param_offload"
    if phase.name == "log-probabilities":
        return (
            "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu",
            "actor_rollout_ref.rollout.log_prob_max_token_len_per_gpu",
        )
    return f"{actor}.ppo_micro_batch_size_per_gpu", f"{actor}.ppo_max_token_len_per_gpu"


def _range(found: Estimate) -> str:
    worst = found.worst
    assert worst is not None
    return f"then '{worst.name}' needs {gib(worst.gpu)} to {gib(worst.gpu_high)} GiB"


def setting(change: Change) -> str:
    """A change in words: `actor.param_offload=true and critic.param_offload=true`."""
    words = {True: "true", False: "false"}
    return " and ".join(
        f"{field}={words[value] if isinstance(value, bool) else value}" for field, value in change.items()
    )
