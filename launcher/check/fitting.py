"""Whether a run fits the memory, and which single change would make it fit."""

from collections.abc import Iterable, Iterator

from launcher.check.changes import setting
from launcher.check.finding import Change, Finding, of_hardware
from launcher.check.subject import Subject
from launcher.core.format import gib
from launcher.estimate import models, rollout_memory
from launcher.estimate.memory import Estimate, Phase, estimate
from launcher.estimate.sizing import BUCKET, KV_CACHE, MemoryInputs
from launcher.preset.schema import FIELDS
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
        return  # this machine does not run it; `cluster` asks for the GPUs of those that do
    found = estimate(subject)
    if found is None and models.is_toy(str(subject.get(MODEL_PATH))):
        return  # not made yet, and small
    if found is None and not subject.is_fsdp:
        message = f"memory cannot be estimated for model_engine={subject.get('model_engine')}, only for FSDP"
        fix = "start with small micro-batches, and watch GPU memory in the first steps"
        yield of_hardware.info("FIT-0", message, fix, ("model_engine",))
        return
    if found is None:
        yield _unknown(MODEL_PATH, f"{subject.get(MODEL_PATH)} is unknown: its memory cannot be estimated")
        return
    if found.plan.critic_guessed:
        yield _unknown(
            CRITIC_PATH, f"the critic, {subject.get(CRITIC_PATH)}, is unknown: it counts as large as the actor"
        )
    yield from _host(subject, found)
    if found.gpu_total is not None and not subject.on_cpu:
        yield from _phases(subject, found, found.gpu_total)
        yield from _free_share(subject, found)
        yield from _longest_row(found, found.gpu_total)


def _unknown(key: str, what: str) -> Finding:
    message = f"the size of {what}"
    return of_hardware.info("FIT-0", message, "download the model first, or set the path to its folder", (key,))


def _phases(subject: Subject, found: Estimate, total: int) -> Iterator[Finding]:
    """One error or one warning, for the worst phase."""
    surely = max(found.phases, key=lambda phase: phase.gpu)
    # what a new run lacks comes before what is too much after a resume only
    likely = max(found.phases, key=lambda phase: (phase.gpu_fresh > total, phase.gpu_high))
    if surely.gpu > total:
        change, fix = _what_helps(subject, found, surely, certain=True)
        message = (
            f"phase '{surely.name}' needs at least {gib(surely.gpu)} GiB of the GPU's usable {gib(total)} GiB: "
            f"{_sum(surely, certain=True)}"
        )
        yield of_hardware.error("FIT-1", message, fix, _keys(surely), change)
    elif likely.gpu_high > total:
        change, fix = _what_helps(subject, found, likely, certain=False)
        message = (
            f"{_supposed(likely)}phase '{likely.name}' may need {_ends(likely)} of the GPU's usable {gib(total)} GiB: "
            f"{_sum(likely, certain=False)}"
        )
        yield of_hardware.warning("FIT-2", message, fix, _keys(likely), change)


def _host(subject: Subject, found: Estimate) -> Iterator[Finding]:
    """Finding about host memory: Ray kills workers when it is 95 % full."""
    machine = subject.machine
    if machine.assumed or not machine.host_total:
        return
    parts = ", ".join(f"{part.label} {gib(part.bytes)}" for part in found.host_parts)
    keys = ("actor_rollout_ref.actor.fsdp_config.param_offload", "actor_rollout_ref.rollout.agent.num_workers")
    if _beyond_host(subject, found):
        message = (
            f"host memory: the run needs at least {gib(found.host)} GiB, and the machine has "
            f"{gib(machine.host_total)} GiB ({parts})"
        )
        fix = "offload less (param_offload, optimizer_offload, offload_policy), or use a smaller model"
        yield of_hardware.error("FIT-5", message, fix, keys)
    elif found.host_high > machine.host_available:
        message = (
            f"host memory: the run may need up to {gib(found.host_high)} GiB, and {gib(machine.host_available)} GiB "
            f"are available ({parts})"
        )
        fix = "use fewer processes: rollout.agent_workers=1, reward.workers=1, data.dataloader_num_workers=0"
        change = {"rollout.agent_workers": 1, "reward.workers": 1, "data.dataloader_num_workers": 0}
        yield of_hardware.warning("FIT-6", message, fix, keys, change)


def _beyond_host(subject: Subject, found: Estimate) -> bool:
    """Whether the host certainly lacks the memory; unknown for an assumed machine."""
    return 0 < subject.machine.host_total * 0.95 < found.host


def _free_share(subject: Subject, found: Estimate) -> Iterator[Finding]:
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


def _longest_row(found: Estimate, total: int) -> Iterator[Finding]:
    """The engine does not start if one row of the longest length does not fit into its KV cache."""
    plan = found.plan
    if plan.utilisation is None or plan.of_free:
        return  # sglang takes what there is
    weights, token = rollout_memory.weights(plan), rollout_memory.kv_bytes(plan)
    room, wanted, shorter = rollout_memory.room(plan, total), token * plan.max_model_len, token * plan.longest
    if room - rollout_memory.working(plan) >= wanted:
        return
    fix, change = "use a smaller model, or more GPUs with rollout.tensor_model_parallel_size", None
    needed = (weights + shorter + rollout_memory.working(plan)) / total
    share = next((step / 20 for step in range(1, 19) if step / 20 > max(needed, plan.utilisation)), None)
    if plan.max_model_len > plan.longest and room - rollout_memory.working(plan) >= shorter:
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


def _short(plan: MemoryInputs, total: int, room: int, row: str) -> str:
    if plan.kv_cache is not None:
        return f"kv_cache_memory_bytes is {gib(room)} GiB, but {row}"
    share = f"the engine's share, {plan.utilisation:g} x {gib(total)} GiB,"
    if room <= 0:
        return f"{share} is less than its weights, {gib(rollout_memory.weights(plan))} GiB"
    work = f"about {gib(rollout_memory.working(plan))} GiB of working memory"
    return f"{share} leaves {gib(room)} GiB besides its weights, but {row} and {work}"


def _what_helps(subject: Subject, now: Estimate, worst: Phase, *, certain: bool) -> tuple[Change | None, str]:
    """The first change with which everything is likely to fit; if `certain`, or else may fit at all; or else two
    changes.
    """
    if worst.name == "reward model":
        return None, f"lower {_SCORING}, or use separate GPUs for the reward model (reward.model_own_gpus=true)"
    possible = list(_possible(subject, now))
    second = next((each for each in possible if certain and _fits(each[1], surely=True)), None)
    for change, found in possible:
        if _fits(found):
            cheaper = f"; {setting(second[0])} alone may be enough" if second and second[0] != change else ""
            return change, f"set {setting(change)}: {_range(found)}{cheaper}"
    if second is not None:
        return second[0], f"set {setting(second[0])}, which may be enough: {_range(second[1])}"
    first = min(possible, key=lambda each: _highest(each[1]), default=None)
    for change, found in _possible(subject.with_fields(first[0]), now) if first else ():
        if first and _fits(found):
            both = f"{setting(first[0])} together with {setting(change)}"
            return {**first[0], **change}, f"no single change is enough; set {both}: {_range(found)}"
    lora = "" if now.plan.actor.trainable < now.plan.actor.parameters else " or LoRA (model.lora_rank=16)"
    policy = "actor.offload_policy and critic.offload_policy" if now.plan.critic else "actor.offload_policy"
    return None, (
        f"no single change is enough; use more GPUs, a smaller model{lora}, or smaller micro-batches with "
        f"actor.strategy=fsdp2 and {policy}"
    )


def _possible(subject: Subject, now: Estimate) -> Iterator[tuple[Change, Estimate]]:
    """Changes with which engine and host have at least as much room as `now`, and the resulting estimates."""
    # an engine that cannot start as it is has a finding of its own
    room = min(0, rollout_memory.row_room(now.plan, now.gpu_total))
    for change in candidates(subject):
        found = estimate(subject.with_fields(change))
        if found is None or found.gpu_total is None or _beyond_host(subject, found):
            continue
        if rollout_memory.row_room(found.plan, found.gpu_total) >= room:
            yield change, found


def _fits(found: Estimate, *, surely: bool = False) -> bool:
    """Whether every phase is likely to fit; `surely`: whether none certainly exceeds the memory."""
    total = found.gpu_total or 0
    return all((phase.gpu if surely else phase.gpu_high) <= total for phase in found.phases)


def _highest(found: Estimate) -> int:
    return max(phase.gpu_needed for phase in found.phases)


def candidates(subject: Subject) -> Iterator[Change]:
    """The candidate changes, cheapest first; each is one decision for actor and critic together."""
    found = estimate(subject)
    assert found is not None
    plan = found.plan
    if plan.copied and plan.actor.trainable < plan.actor.parameters:
        # only an engine that read the base model itself takes layers
        yield {"rollout.layered_summon": True, "rollout.load_format": "safetensors"}
    if plan.utilisation is not None and found.gpu_total:
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


def _smaller(subject: Subject, plan: MemoryInputs) -> Iterator[Change]:
    """Smaller micro-batches: halves of the present ones, not below one row."""
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


def _supposed(phase: Phase) -> str:
    """The assumptions of the upper end."""
    always = phase.name in ("engine start", "rollout", "reward model", "weights to engine", "checkpoint")
    return "" if always else "if micro-batches are full of the longest sequences, "


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


def _range(found: Estimate) -> str:
    worst = max(found.phases, key=lambda phase: phase.gpu_needed)
    return f"'{worst.name}' then needs {gib(worst.gpu)} to {gib(worst.gpu_needed)} GiB"
