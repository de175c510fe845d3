"""Asynchronous trainers: ASYNC-1 to ASYNC-8, and limits of the legacy trainer.

veRL: `verl/trainer/ppo/v1/trainer_separate_async.py: PPOTrainerSeparateAsync`, `trainer_colocate_async.py`,
`replay_buffer.py: ReplayBufferAsync`, `verl/experimental/separation/engine_workers.py: DetachActorWorker`,
`verl/checkpoint_engine/base.py: CheckpointEngineRegistry`, `verl/workers/rollout/replica.py: max_concurrency`.
"""

import math

from launcher.check.config.base import Findings, of_registry, of_trainer
from launcher.check.finding import found, setting
from launcher.check.subject import Subject
from launcher.core.text import did_you_mean
from launcher.verl.config import (
    ACTOR,
    BATCH,
    CORRECTION,
    ENGINE,
    ENGINE_GPUS,
    ENGINE_NODES,
    HYBRID,
    MAX_AGE,
    MINI,
    MODEL,
    OLD_ONES,
    REWARD_MODEL,
    ROLLOUT,
    SYNC_STEP,
    TRAINER,
    TRAINER_MODE,
    TRANSFER,
    N,
)

OWN_TRANSFER = f"{ROLLOUT}.checkpoint_engine.custom_backend_module"
OWN_GPUS = f"{REWARD_MODEL}.enable_resource_pool"
LEND = f"{TRAINER}.v1.separate_async.hybrid_rollout.enable_switch"
SEQS = f"{ROLLOUT}.max_num_seqs"
CALLS = 1000  # calls that Ray lets an engine's actor handle at once, unless max_num_seqs is larger
CONTROL = 16  # calls that veRL adds to max_num_seqs for itself
RESTORED = ("fsdp", "fsdp2", "veomni", "megatron")
"""Strategies that can save and restore weights."""


def batch_of_updates(subject: Subject) -> Findings:
    """ASYNC-1: with separate_async, a batch is a whole number of updates; the engine has GPUs and gets weights."""
    if not subject.is_separate:
        return
    batch, mini, step = subject.whole(BATCH), subject.whole(MINI), subject.whole(SYNC_STEP)
    if batch is not None and mini is not None and step is not None and batch != mini * step:
        fits = batch % mini == 0
        change = {"trainer.parameter_sync_step": batch // mini} if fits else {"data.train_batch_size": mini * step}
        yield found("ASYNC-1.batch", batch=batch, mini=mini, step=step, needed=mini * step, fixes=[setting(change)])
    for key, field in ((ENGINE_NODES, "rollout.nodes"), (ENGINE_GPUS, "rollout.gpus")):
        if subject.whole(key) is None:
            yield found("ASYNC-1.apart", key=key, value=subject.get(key), field=field)
    size, own = subject.engine_size, subject.engine_gpus
    if own and own < size:
        yield found("ASYNC-1.none", size=size, own=own)
    elif own and own % size:
        yield found("ASYNC-1.idle", size=size, left=own % size, own=own)
    if subject.get(TRANSFER) == "naive":
        backend = "gloo" if subject.on_cpu else "nccl"
        yield found("ASYNC-1.naive", backend=backend)
    if subject.get(f"{REWARD_MODEL}.enable") is True and not subject.get(OWN_GPUS):
        yield found("ASYNC-1.reward-model")


@of_registry
def transfer(subject: Subject) -> Findings:
    """ASYNC-2: the engine can receive weights by this transfer."""
    backend, known = subject.text(TRANSFER), subject.facts.names.get("transfers", [])
    if backend == "gloo" and not subject.on_cpu:
        yield found("ASYNC-2.gloo")
    elif backend and known and backend not in ("gloo", *known) and not subject.get(OWN_TRANSFER):
        near = did_you_mean(backend, known)
        yield found("ASYNC-2.unknown", backend=backend, near=near, version=subject.version, known=known)
    elif subject.on_cpu and backend not in (None, "naive", "gloo"):
        yield found("ASYNC-2.gpu", backend=backend)
    if backend == "delta_sharded" and subject.get(ENGINE) not in ("vllm", "sglang"):
        yield found("ASYNC-2.delta", value=subject.get(ENGINE))


def engines_beside_the_trainer(subject: Subject) -> Findings:
    """ASYNC-3: only separate_async can omit engines on the trainer's GPUs, or lend it these GPUs."""
    if subject.get(HYBRID) is False and not subject.is_v1:
        trainer = "legacy trainer" if subject.at_least("0.9.0") else f"trainer of veRL {subject.version}"
        yield found("ASYNC-3.trainer", trainer=trainer)
    elif subject.get(HYBRID) is False and not (subject.is_separate and subject.at_least("0.9.1")):
        mode = f"veRL {subject.version}" if subject.is_separate else subject.trainer_mode
        yield found("ASYNC-3.no-effect", mode=mode)
    if subject.get(LEND) is True and subject.is_separate and not subject.has_hybrid_engine:
        yield found("ASYNC-3.cannot-lend")
    if subject.get(LEND) is True and subject.is_separate and subject.get(f"{ROLLOUT}.disaggregation.enabled") is True:
        key = f"{ROLLOUT}.disaggregation.enabled"
        yield found("ASYNC-3.disaggregated", key=key)
    if subject.get(TRAINER_MODE) != "separate_async" and any(subject.is_set(key) for key in (ENGINE_NODES, LEND)):
        given = [key for key in (ENGINE_NODES, ENGINE_GPUS, LEND) if subject.is_set(key)]
        if subject.whole(ENGINE_NODES) or subject.get(LEND):
            yield found("ASYNC-3.unread", given=given, mode=subject.trainer_mode, keys=given)


def age(subject: Subject) -> Findings:
    """ASYNC-4: responses requested ahead are not too old when they are used."""
    mode, limit = subject.trainer_mode, subject.whole(MAX_AGE)
    if mode == "sync" or limit is None or subject.get(OLD_ONES) != "drop":
        return
    key = f"{TRAINER}.v1.{mode}.num_warmup_batches"
    ahead = int(subject.number(key) or 0)
    if ahead + 1 > limit:
        yield found("ASYNC-4", key=key, ahead=ahead, age=ahead + 1, limit=limit, enough=ahead + 2)


@of_trainer
def adapters(subject: Subject) -> Findings:
    """ASYNC-5: engines on other GPUs receive an adapter only when it is merged into the weights."""
    merge = f"{MODEL}.lora.merge"
    if subject.is_separate and subject.has_lora and subject.get(merge) is not True:
        yield found("ASYNC-5")


def weights_put_aside(subject: Subject) -> Findings:
    """ASYNC-6: separate_async saves old weights, which some strategies do not support."""
    strategy = subject.text(f"{ACTOR}.strategy")
    if not subject.is_separate or strategy in (None, *RESTORED) or subject.get(f"{CORRECTION}.bypass_mode") is True:
        return
    yield found("ASYNC-6", strategy=strategy)


def determinism(subject: Subject) -> Findings:
    """ASYNC-7: determinism requires responses in prompt order, and so the legacy trainer."""
    keys = [
        key
        for key in (f"{ROLLOUT}.full_determinism", f"{ACTOR}.fsdp_config.full_determinism")
        if subject.get(key) is True
    ]
    if keys and subject.is_v1:
        yield found("ASYNC-7.order", first=keys[0], keys=[*keys, f"{TRAINER}.use_v1"], version=subject.version)
    if subject.get(f"{ROLLOUT}.full_determinism") is True and subject.get(ENGINE) not in (None, "vllm"):
        yield found("ASYNC-7.engine", value=subject.get(ENGINE))


def requests_at_once(subject: Subject) -> Findings:
    """ASYNC-8: an engine with all requests of a batch still accepts veRL's calls."""
    batch, n, slots = subject.whole(BATCH), subject.whole(N), subject.whole(SEQS)
    gpus = subject.engine_gpus if subject.is_separate else subject.gpus
    engines = gpus // subject.engine_size
    if subject.trainer_mode == "sync" or batch is None or n is None or not engines:
        return
    requests, limit = math.ceil(batch * n / engines), max(CALLS, (slots or 0) + CONTROL)
    if requests < limit:
        return
    yield found("ASYNC-8", batch=batch, n=n, engines=engines, requests=requests, limit=limit)


RULES = (
    *(batch_of_updates, transfer, engines_beside_the_trainer, age, adapters, weights_put_aside, determinism),
    requests_at_once,
)
