"""Whether a run fits into memory, and which single change would make it fit."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from launcher.check.finding import Finding, Settings, Words, found, setting
from launcher.check.subject import Subject
from launcher.core.format import gib
from launcher.estimate import models, rollout_memory
from launcher.estimate.memory import Estimate, Phase, estimate
from launcher.estimate.sizing import BUCKET, KV_CACHE, MemoryInputs
from launcher.preset.schema import FIELDS
from launcher.record.fix import Fix
from launcher.verl.config import CRITIC_PATH, MODEL_PATH, REWARD_MODEL, UTILISATION

_SCORING = f"{REWARD_MODEL}.rollout.gpu_memory_utilization"

SEQUENCES = 256  # rows that the engine writes at once; more of them cost the most in the sampler
ROWS = (
    "actor.ppo_micro_batch_size_per_gpu",
    "rollout.log_prob_micro_batch_size_per_gpu",
    "ref.log_prob_micro_batch_size_per_gpu",
)


def checks(subject: Subject) -> Iterable[Finding]:
    """All findings about memory."""
    if subject.loaded.preset.cluster.submit and not subject.machine.assumed:
        return  # runs on other machines; `cluster` checks their GPUs
    estimated = estimate(subject)
    if estimated is None and models.is_toy(str(subject.get(MODEL_PATH))):
        return  # not made yet, and small
    if estimated is None and not subject.is_fsdp:
        yield found("FIT-0.engine", engine=subject.get("model_engine"))
        return
    if estimated is None:
        yield found("FIT-0.model", model=subject.get(MODEL_PATH))
        return
    if estimated.plan.critic_guessed:
        yield found("FIT-0.critic", model=subject.get(CRITIC_PATH))
    yield from _host(subject, estimated)
    if estimated.gpu_total is not None and not subject.on_cpu:
        yield from _phases(subject, estimated, estimated.gpu_total)
        yield from _free_share(subject, estimated)
        yield from _longest_row(estimated, estimated.gpu_total)


def _phases(subject: Subject, estimated: Estimate, total: int) -> Iterator[Finding]:
    """One error or one warning, for the worst phase."""
    surely = max(estimated.phases, key=lambda phase: phase.gpu)
    # a new run's shortage comes before one only after a resume
    likely = max(estimated.phases, key=lambda phase: (phase.gpu_fresh > total, phase.gpu_high))
    if surely.gpu > total:
        words: Words = {"phase": surely.name, "need": gib(surely.gpu), "sum": _sum(surely, certain=True)}
        fix = _what_helps(subject, estimated, surely, certain=True)
        yield found("FIT-1", **words, total=gib(total), keys=_keys(surely), fixes=[fix])
    elif likely.gpu_high > total:
        # the assumptions of the upper end
        always = likely.name in ("engine start", "rollout", "reward model", "weights to engine", "checkpoint")
        supposed = "" if always else "if micro-batches are full of maximum-length sequences, "
        words = {"supposed": supposed, "phase": likely.name, "ends": _ends(likely), "total": gib(total)}
        fix = _what_helps(subject, estimated, likely, certain=False)
        yield found("FIT-2", **words, sum=_sum(likely, certain=False), keys=_keys(likely), fixes=[fix])


def _host(subject: Subject, estimated: Estimate) -> Iterator[Finding]:
    """The finding about host memory: Ray kills workers at 95 %."""
    machine = subject.machine
    if machine.assumed or not machine.host_total:
        return
    parts = ", ".join(f"{part.label} {gib(part.bytes)}" for part in estimated.host_parts)
    if _beyond_host(subject, estimated):
        yield found("FIT-5", need=gib(estimated.host), have=gib(machine.host_total), parts=parts)
    elif estimated.host_high > machine.host_available:
        yield found("FIT-6", need=gib(estimated.host_high), free=gib(machine.host_available), parts=parts)


def _beyond_host(subject: Subject, estimated: Estimate) -> bool:
    """Whether host memory is certainly too small; False for an assumed machine."""
    return 0 < subject.machine.host_total * 0.95 < estimated.host


def _free_share(subject: Subject, estimated: Estimate) -> Iterator[Finding]:
    """vLLM needs its whole share free at its start, even with a small KV cache."""
    plan = estimated.plan
    if subject.machine.assumed or plan.utilisation is None or plan.of_free:
        return
    for index, gpu in enumerate(subject.machine.gpus[: subject.gpus]):
        trained = estimated.phases[0].gpu - rollout_memory.share(plan, estimated.gpu_total or 0)
        wanted = trained + rollout_memory.asked(plan, gpu.usable)
        if wanted <= gpu.usable and wanted > gpu.total - gpu.used:
            holders = f" (in use by {', '.join(gpu.others[:3])})" if gpu.others else ""
            words: Words = {
                "index": index,
                "free": gib(gpu.total - gpu.used),
                "total": gib(gpu.total),
                "need": gib(wanted),
            }
            yield found("FIT-3", **words, holders=holders)


def _longest_row(estimated: Estimate, total: int) -> Iterator[Finding]:
    """The engine does not start if one row of maximum length exceeds its KV cache."""
    plan = estimated.plan
    if plan.utilisation is None or plan.of_free:
        return  # sglang uses the available memory
    weights, token = rollout_memory.weights(plan), rollout_memory.kv_bytes(plan)
    room, wanted, shorter = rollout_memory.room(plan, total), token * plan.max_model_len, token * plan.longest
    if room - rollout_memory.working(plan) >= wanted:
        return
    variant = "model"
    needed = (weights + shorter + rollout_memory.working(plan)) / total
    share = next((step / 20 for step in range(1, 19) if step / 20 > max(needed, plan.utilisation)), None)
    if plan.max_model_len > plan.longest and room - rollout_memory.working(plan) >= shorter:
        variant = "length"
    elif plan.kv_cache is not None:
        variant = "cache"
    elif share:
        variant = "share"
    row = f"one sequence of {plan.max_model_len} tokens needs {gib(wanted)} GiB of KV cache"
    words: Words = {"short": _short(plan, total, room, row), "longest": plan.longest, "least": shorter, "share": share}
    words["key"] = UTILISATION if plan.kv_cache is None else KV_CACHE
    yield found(f"FIT-4.{variant}", **words, level="error" if room < wanted else "warning")


def _short(plan: MemoryInputs, total: int, room: int, row: str) -> str:
    if plan.kv_cache is not None:
        return f"kv_cache_memory_bytes is {gib(room)} GiB, but {row}"
    share = f"the engine's share, {plan.utilisation:g} x {gib(total)} GiB,"
    if room <= 0:
        return f"{share} is less than its weights, {gib(rollout_memory.weights(plan))} GiB"
    work = f"about {gib(rollout_memory.working(plan))} GiB of working memory"
    return f"{share} leaves {gib(room)} GiB besides its weights, but {row} and {work}"


def _what_helps(subject: Subject, now: Estimate, worst: Phase, *, certain: bool) -> Fix:
    """The first change that likely makes everything fit (if `certain`: may make it fit); without one, two changes."""
    if worst.name == "reward model":
        return Fix(f"lower {_SCORING}, or use separate GPUs for the reward model (reward.model_own_gpus=true)")
    possible = list(_possible(subject, now))
    second = next((each for each in possible if certain and _fits(each[1], surely=True)), None)
    for change, estimated in possible:
        if _fits(estimated):
            other = second and second[0] != change and setting(second[0]).text.removeprefix("set ")
            cheaper = f"; {other} alone may be enough" if other else ""
            return replace(setting(change), why=f": {_range(estimated)}{cheaper}")
    if second is not None:
        return replace(setting(second[0]), why=f", which may be enough: {_range(second[1])}")
    first = min(possible, key=lambda each: max(phase.gpu_needed for phase in each[1].phases), default=None)
    for change, estimated in _possible(subject.with_fields(first[0]), now) if first else ():
        if first and _fits(estimated):
            both = setting({**first[0], **change})
            return replace(both, when="no single change is enough", why=f": {_range(estimated)}")
    lora = "" if now.plan.actor.trainable < now.plan.actor.parameters else " or LoRA (model.lora_rank=16)"
    policy = "actor.offload_policy and critic.offload_policy" if now.plan.critic else "actor.offload_policy"
    return Fix(
        f"no single change is enough; use more GPUs, a smaller model{lora}, or smaller micro-batches with "
        f"actor.strategy=fsdp2 and {policy}"
    )


def _possible(subject: Subject, now: Estimate) -> Iterator[tuple[Settings, Estimate]]:
    """Changes that leave engine and host at least as much room as `now`, and their estimates."""
    # an engine that cannot start as it is has a finding of its own
    room = min(0, rollout_memory.row_room(now.plan, now.gpu_total))
    for change in candidates(subject):
        estimated = estimate(subject.with_fields(change))
        if estimated is None or estimated.gpu_total is None or _beyond_host(subject, estimated):
            continue
        if rollout_memory.row_room(estimated.plan, estimated.gpu_total) >= room:
            yield change, estimated


def _fits(estimated: Estimate, *, surely: bool = False) -> bool:
    """Whether every phase likely fits; `surely`: whether none certainly exceeds the memory."""
    total = estimated.gpu_total or 0
    return all((phase.gpu if surely else phase.gpu_high) <= total for phase in estimated.phases)


def candidates(subject: Subject) -> Iterator[Settings]:
    """Candidate changes, cheapest first; each is one decision for actor and critic together."""
    estimated = estimate(subject)
    assert estimated is not None
    plan = estimated.plan
    if plan.copied and plan.actor.trainable < plan.actor.parameters:
        # only an engine that read the base model itself accepts layers
        yield {"rollout.layered_summon": True, "rollout.load_format": "safetensors"}
    if plan.utilisation is not None and estimated.gpu_total:
        for step in range(int(plan.utilisation * 20 - 1e-9), 1, -1):
            yield {"rollout.gpu_memory_utilization": step / 20}
    if plan.utilisation is not None and plan.max_num_seqs > SEQUENCES:
        yield {"rollout.max_num_seqs": SEQUENCES}
    if plan.bucket > BUCKET << 20:
        yield {"rollout.update_weights_bucket_megabytes": BUCKET}
    if not plan.sleeps:
        yield {"rollout.free_cache_engine": True}
    if not plan.checkpointing:
        yield {"model.enable_gradient_checkpointing": True}
    yield from _smaller(subject, plan)
    if not subject.get("actor_rollout_ref.model.use_remove_padding", False):
        yield {"model.use_remove_padding": True}
    both = [name for name, model in (("actor", plan.actor), ("critic", plan.critic)) if model]
    for keys in (("optimizer_offload",), ("param_offload", "optimizer_offload")):
        yield {f"{name}.{key}": True for name in both for key in keys}
    yield {"actor.strategy": "fsdp2", **{f"{name}.offload_policy": True for name in both}}


def _smaller(subject: Subject, plan: MemoryInputs) -> Iterator[Settings]:
    """Smaller micro-batches: halves of the current ones, down to one row."""
    if subject.get("actor_rollout_ref.actor.use_dynamic_bsz", False):
        names = ("actor", "critic") if plan.critic else ("actor",)
        fields = [f"{name}.ppo_max_token_len_per_gpu" for name in names]
        tokens = subject.get(FIELDS[fields[0]].key)
        while isinstance(tokens, int) and tokens // 2 >= plan.longest:
            tokens //= 2
            yield dict.fromkeys(fields, tokens)
        return
    sizes = {field: subject.get(FIELDS[field].key) for field in ROWS}
    rows = {field: size for field, size in sizes.items() if isinstance(size, int) and size > 1}
    while any(size > 1 for size in rows.values()):
        rows = {field: max(1, size // 2) for field, size in rows.items()}
        yield dict(rows)


def _sum(phase: Phase, *, certain: bool) -> str:
    parts = [part for part in phase.parts if part.bytes and (part.certain or not certain)]
    return " + ".join(f"{part.label} {gib(part.bytes)}" for part in parts)


def _ends(phase: Phase) -> str:
    """Both ends of a phase: `20.5 to 23.5 GiB, 25.1 in the first step after a resume,`."""
    resumed = f", {gib(phase.gpu_high)} in the first step after a resume,"
    return f"{gib(phase.gpu)} to {gib(phase.gpu_fresh)} GiB{resumed * (phase.gpu_high > phase.gpu_fresh)}"


def _keys(phase: Phase) -> tuple[str, ...]:
    """The veRL keys that determine a phase."""
    actor = "actor_rollout_ref.actor"
    if phase.name in ("engine start", "rollout"):
        offload = (f"{actor}.fsdp_config.{name}_offload" for name in ("param", "optimizer"))
        return UTILISATION, *offload
    if phase.name == "weights to engine":
        return ("actor_rollout_ref.rollout.checkpoint_engine.update_weights_bucket_megabytes",)
    if phase.name == "reward model":
        return (_SCORING,)
    if phase.name == "update critic":
        return "critic.ppo_infer_max_token_len_per_gpu", "critic.fsdp.param_offload"
    if phase.name == "log-probabilities":
        return (
            "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu",
            "actor_rollout_ref.rollout.log_prob_max_token_len_per_gpu",
        )
    return f"{actor}.ppo_micro_batch_size_per_gpu", f"{actor}.ppo_max_token_len_per_gpu"


def _range(estimated: Estimate) -> str:
    worst = max(estimated.phases, key=lambda phase: phase.gpu_needed)
    return f"'{worst.name}' then needs {gib(worst.gpu)} to {gib(worst.gpu_needed)} GiB"
