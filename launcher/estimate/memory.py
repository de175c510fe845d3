"""The memory estimate of a run, phase by phase, with the formula.

Each phase has two values. The certain one applies to any data: weights, Adam, gradients, the engine's reservation. The
likely one adds activations and logits for micro-batches of maximum-length rows, CUDA's own memory and the memory of a
sleeping engine. docs/evidence/memory.md compares both with real runs.

One process trains both models. Its allocator keeps memory freed by a phase: veRL 0.9.1 empties that cache when new
weights go to the engine (`ActorRolloutRefWorker.update_weights`) and when weights are moved off the GPU
(`offload_fsdp_model_to_cpu`), not between the other phases. A cache never makes a run fail, as torch frees it when the
GPU is full: it counts up to the size of the GPU.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from launcher.core.format import GIB, counted, gib, number
from launcher.estimate import rollout_memory
from launcher.estimate.models import Architecture
from launcher.estimate.rollout_memory import layer_bytes
from launcher.estimate.sizing import MemoryInputs, PlacedConfig, plan
from launcher.estimate.trained import Trained

FRESH = int(1.2 * GIB)  # CUDA context and NCCL of the training process before its first pass (H200 runs)
CONTEXT = int(1.45 * GIB)  # CONTEXT with cuBLAS's workspaces and the kernels of all passes
PROCESS = int(0.45 * GIB)  # a Python process that imported torch, with its share of Ray's services
PROCESS_LEAST = int(0.1 * GIB)  # the mean that forks of one process hold for themselves (toy-cpu: 0.06 to 0.16 GiB)
TRAINER = 3 * GIB  # a worker that trains
ENGINE = int(6.6 * GIB)  # vLLM's server, core and worker
RESUMED = "reference, after a resume"
COPIES = "bf16 copies of the largest layers"
CACHED = "kept by torch from earlier phases"


class Part(NamedTuple):
    """A summand of a phase."""

    label: str
    bytes: int
    certain: bool


@dataclass(frozen=True)
class Phase:
    """One phase on one GPU: `gpu` is certain, `gpu_high` the likely upper end."""

    name: str
    parts: tuple[Part, ...]

    @property
    def gpu(self) -> int:
        return sum(part.bytes for part in self.parts if part.certain)

    @property
    def gpu_high(self) -> int:
        return sum(part.bytes for part in self.parts)

    @property
    def gpu_needed(self) -> int:
        """The upper end without the cache that torch would free."""
        return sum(part.bytes for part in self.parts if part.label != CACHED)

    @property
    def gpu_fresh(self) -> int:
        """The upper end for a run that was not just resumed."""
        return sum(part.bytes for part in self.parts if part.label != RESUMED)

    def as_json(self) -> Mapping[str, object]:
        return {
            "name": self.name,
            "gpu": self.gpu,
            "gpu_high": self.gpu_high,
            "parts": [part._asdict() for part in self.parts],
        }


@dataclass(frozen=True)
class Estimate:
    """Bytes per GPU by phase, and on the host. `gpu_total`: usable size of the smallest GPU, None without one."""

    plan: MemoryInputs
    phases: tuple[Phase, ...]
    host_parts: tuple[Part, ...]
    gpu_total: int | None
    formula: tuple[str, ...]

    @property
    def host(self) -> int:
        return sum(part.bytes for part in self.host_parts if part.certain)

    @property
    def host_high(self) -> int:
        return sum(part.bytes for part in self.host_parts)

    @property
    def worst(self) -> Phase | None:
        """The phase that likely needs most memory."""
        return max(self.phases, key=lambda phase: phase.gpu_high, default=None)

    def as_json(self) -> dict[str, object]:
        """`memory` of `check --json`, in bytes."""
        facts = self.plan.facts
        return {
            "model": {"name": facts.name, "parameters": facts.parameters, "source": facts.source},
            "gpu_total": self.gpu_total,
            "phases": [phase.as_json() for phase in self.phases],
            "host": self.host,
            "host_high": self.host_high,
            "host_parts": [part._asdict() for part in self.host_parts],
            "formula": list(self.formula),
        }


def estimate(subject: PlacedConfig) -> Estimate | None:
    """The memory of a run; None for an unknown model. Without a GPU, only host memory."""
    sizes = plan(subject)
    if sizes is None:
        return None
    gpus = subject.machine.gpus[: subject.gpus]
    total = min((gpu.usable for gpu in gpus if gpu.total), default=None)  # some drivers do not report the size
    phases = () if subject.on_cpu else _phases(sizes, total)
    return Estimate(sizes, phases, _host(subject, sizes), total, _formula(sizes, total))


def _phases(sizes: MemoryInputs, total: int | None) -> tuple[Phase, ...]:
    models = [model for model in (sizes.actor, sizes.critic) if model]
    awake, asleep = _engine(sizes, total)
    scoring, waiting = _reward_model(sizes, total)
    context = Part("CUDA context", CONTEXT, False)
    idle = [Part(f"{model.name} idle", model.idle(), True) for model in models]
    start = [Part(f"{model.name} weights", model.idle(with_adam=False), True) for model in models]
    first = Part("reference, not yet offloaded", sizes.reference_first, True)
    # it is gone before the kernels of all passes are there
    resumed = Part(RESUMED, max(0, sizes.reference_first - (CONTEXT - FRESH)), False)
    loaded = Part("actor weights, reloaded", sizes.actor.back, True)
    sent = _sending(sizes, loaded) if awake or sizes.transferred else ()
    saved = Part("weights of the saved model", max(model.back for model in models), True)  # one after the other
    rest = (*asleep, *waiting, context)
    resting = sum(part.bytes for part in (*idle, *rest))
    scored = Phase("log-probabilities", (*idle, loaded, *_passing(sizes), *rest))
    # the reference's pass comes last and empties nothing
    held = resting if sizes.actor.back and not sizes.reference else scored.gpu_fresh - loaded.bytes
    updates = []
    for model in reversed(models):
        others = [part for part, other in zip(idle, models, strict=True) if other is not model]
        if model is sizes.critic and model.back:  # its pass for values emptied the cache
            held = resting
        parts, growth = _updating(sizes, model)
        updates.append(_cached(Phase(f"update {model.name}", (*others, *parts, *rest)), held + growth, total))
        held = resting if model.back else updates[-1].gpu_high
    phases = (
        Phase("engine start", (*start, first, *awake, *waiting, Part("CUDA context", FRESH, False))),
        Phase("rollout", (*idle, *awake, *waiting, resumed, context)),
        Phase("reward model", (*idle, *scoring, *asleep, context)) if scoring else None,
        scored,
        *updates,
        Phase("weights to engine", (*idle, *sent, *rest)) if sent else None,
        _cached(Phase("checkpoint", (*idle, saved, *rest)), held, total),
        *_engine_alone(sizes, total),
    )
    return tuple(filter(None, phases))


def _engine(sizes: MemoryInputs, total: int | None) -> tuple[list[Part], list[Part]]:
    """An engine on the same GPU: during the rollout, and in other phases."""
    if sizes.utilisation is None or total is None:
        return [], []
    awake = [
        Part("engine", rollout_memory.share(sizes, total), True),
        Part("engine overhead", rollout_memory.beyond(sizes), False),
    ]
    return awake, [Part("engine, sleep mode", rollout_memory.asleep(sizes), False)] if sizes.sleeps else awake


def _passing(sizes: MemoryInputs) -> list[Part]:
    """A pass for log-probabilities."""
    shape, tokens = sizes.facts.sizes, sizes.log_prob_tokens
    passed = max(logits(shape, tokens, sizes.log_prob_logit), tokens * layer_bytes(shape))
    return [Part(RESUMED, sizes.reference_first, False), Part("logits and layers", passed, False)]


def _updating(sizes: MemoryInputs, model: Trained) -> tuple[list[Part], int]:
    """The update of a model, and its addition to the cache.

    These are gradients and copies, probably made by FSDP on separate streams, and Adam's temporaries, which rarely fit
    into the gaps (fitted to 15 runs).
    """
    is_actor, own = model is sizes.actor, 0 if model.offload_policy else 1
    shape = (sizes.facts if is_actor else sizes.critic_facts or sizes.facts).sizes
    kept = activations(shape, sizes.update_tokens if is_actor else sizes.critic_tokens, sizes)
    scores = logits(shape, sizes.update_tokens, sizes.update_logit) if is_actor else 0
    heads = 2 if is_actor and not shape.tied else 1  # a critic has no output matrix
    copies = 2 * (shape.embedding * heads + 2 * sum(a * b for a, b in shape.linear))
    gradients = model.gradients * own
    moving = [Part("activations", kept, False), Part("logits", scores, False)]
    if gradients > kept + scores:  # Adam's step comes after these are freed
        moving = [Part("Adam temporaries", model.gradients, False)]
    parts = [
        Part(f"{model.name} weights", model.weights * own, True),
        Part(f"{model.name} Adam", model.adam * own, True),
        Part(f"{model.name} gradients", gradients, True),
        Part(COPIES, copies, False),
        *moving,
    ]
    return parts, 2 * gradients + copies


def _cached(phase: Phase, held: int, total: int | None) -> Phase:
    """The phase with the cache that fills it up to `held` bytes, or to the GPU's size."""
    most = held if total is None else min(held, total)
    return Phase(phase.name, (*phase.parts, Part(CACHED, max(0, most - phase.gpu_high), False)))


def _engine_alone(sizes: MemoryInputs, total: int | None) -> list[Phase]:
    """An engine on its own GPU, while it receives new weights."""
    if sizes.own_utilisation is None or total is None:
        return []
    share = int(sizes.own_utilisation * total)
    if sizes.kv_cache is not None:
        share = rollout_memory.share(sizes, total)
    parts = (
        Part("engine", share, True),
        Part("engine overhead", rollout_memory.beyond(sizes), False),
        Part("weight buffers", sizes.transferred, False),
    )
    return [Phase("GPUs of the engine", parts)]


def _reward_model(sizes: MemoryInputs, total: int | None) -> tuple[list[Part], list[Part]]:
    """A reward model on the same GPU: while it scores, and during other phases."""
    if sizes.reward_model is None or total is None:
        return [], []
    scoring = [
        Part("reward model", int(sizes.reward_model * total), True),
        Part("reward model overhead", rollout_memory.PROCESS, False),
    ]
    return scoring, [
        Part("reward model asleep", rollout_memory.PROCESS, False)
    ] if sizes.reward_model_sleeps else scoring


def _sending(sizes: MemoryInputs, loaded: Part) -> tuple[Part, ...]:
    """Memory of new weights during their transfer to the engine, before its KV cache returns."""
    beside = rollout_memory.weights(sizes) * sizes.sleeps if sizes.utilisation is not None else 0
    return (
        *([loaded] if sizes.staged else []),
        Part("engine weights", beside, True),
        Part("weight bucket", max(sizes.bucket, sizes.transferred), False),
        Part("weight copy", sizes.copied, False),
    )


def logits(shape: Architecture, tokens: int, bytes_each: float) -> int:
    """Bytes of a micro-batch's logits with all copies."""
    return int(tokens * shape.vocab * bytes_each)


def activations(shape: Architecture, tokens: int, sizes: MemoryInputs) -> int:
    """Bytes kept for the backward pass: the inputs of all layers, and the intermediate values of one or all layers."""
    if not sizes.checkpointing:
        return tokens * shape.layers * layer_bytes(shape)
    inputs = 0 if sizes.activation_offload else shape.layers * 2 * shape.hidden
    return tokens * (inputs + layer_bytes(shape))


def _host(subject: PlacedConfig, sizes: MemoryInputs) -> tuple[Part, ...]:
    """Host memory: offloaded parts, the reference, and the processes."""
    on_node = sizes.gpus // max(1, int(subject.get("trainer.nnodes", 1) or 1)) or 1
    parts = []
    for model in (sizes.actor, sizes.critic):
        if model and subject.on_cpu:
            parts.append(Part(f"{model.name}", model.weights + model.adam + model.gradients, True))
        elif model and model.host():
            parts.append(Part(f"{model.name}, offloaded", model.host() * on_node, True))
    if sizes.reference:
        parts.append(Part("reference", sizes.reference, True))
    if sizes.aside:
        parts.append(Part("old weights of the actor", sizes.aside * on_node, True))
    largest = max(model.weights + model.adam for model in (sizes.actor, sizes.critic) if model) * on_node
    if int(subject.get("trainer.save_freq", -1) or -1) > 0:
        parts.append(Part("copy for a checkpoint", largest, False))
    workers = [
        subject.get("actor_rollout_ref.rollout.agent.num_workers", 8),
        subject.get("reward.num_workers", 8),
        subject.get("transfer_queue.backend.SimpleStorage.num_data_storage_units", 8),
    ]
    count = 4 + sum(each for each in workers if isinstance(each, int))  # 4: driver, task, queue, load balancer
    if subject.on_cpu:
        count += 2 * on_node  # a trainer and its engine are processes like the others
    else:
        engines = 1 if sizes.reward_model is None else 2
        parts.append(Part("trainers and engines", on_node * (TRAINER + engines * ENGINE), False))
    parts.append(Part(f"{counted(count, 'process')} importing torch", count * PROCESS_LEAST, True))
    parts.append(Part("their data, and Ray", count * (PROCESS - PROCESS_LEAST), False))
    if forks := 2 * int(subject.get("data.dataloader_num_workers", 8) or 0):  # forks share unchanged memory
        parts.append(Part(counted(forks, "data process"), forks * PROCESS, False))
    return tuple(parts)


def _formula(sizes: MemoryInputs, total: int | None) -> tuple[str, ...]:
    shape = sizes.facts.sizes
    lines = []
    for model in (sizes.actor, sizes.critic):
        if model:
            lora = model.trainable < model.parameters
            part = f", {number(model.trainable)} trained" if lora else ""
            over = f" over {counted(model.shards, 'GPU')}" if model.shards > 1 else ""
            lines.append(
                f"{model.name}: {number(model.parameters)} parameters{part} x {model.element} B weights, "
                f"{2 * model.element} B Adam, {model.element} B gradients{over} = {gib(model.weights)} + "
                f"{gib(model.adam)} + {gib(model.gradients)} GiB"
            )
    if sizes.utilisation is not None and total is not None:
        said = f"{sizes.utilisation:g} x {gib(rollout_memory.whole(sizes, total))}"
        if sizes.kv_cache is not None:
            said = f"{gib(rollout_memory.weights(sizes))} weights + {gib(sizes.kv_cache)} KV cache"
        lines.append(f"engine: {said} = {gib(rollout_memory.share(sizes, total))} GiB")
    for name, tokens, each in (
        ("log-probabilities", sizes.log_prob_tokens, sizes.log_prob_logit),
        ("update", sizes.update_tokens, sizes.update_logit),
    ):
        lines.append(
            f"logits, {name}: {tokens} tokens x {shape.vocab} vocabulary x {each:g} B = "
            f"{gib(logits(shape, tokens, each))} GiB"
        )
    kept = activations(shape, sizes.update_tokens, sizes)
    lines.append(f"activations, actor: {sizes.update_tokens} tokens = {gib(kept)} GiB")
    if sizes.critic and sizes.critic_facts:
        kept = activations(sizes.critic_facts.sizes, sizes.critic_tokens, sizes)
        lines.append(f"activations, critic: {sizes.critic_tokens} tokens = {gib(kept)} GiB")
    return tuple(lines)
