"""Trainers other than the synchronous one: ASYNC-1 to ASYNC-8, and limits of the legacy trainer.

veRL: `verl/trainer/ppo/v1/trainer_separate_async.py: PPOTrainerSeparateAsync`, `trainer_colocate_async.py`,
`replay_buffer.py: ReplayBufferAsync`, `verl/experimental/separation/engine_workers.py: DetachActorWorker`,
`verl/checkpoint_engine/base.py: CheckpointEngineRegistry`, `verl/workers/rollout/replica.py: max_concurrency`.
"""

import math

from launcher.check.config.base import Findings, error, gpu_count, info, of_registry, of_trainer, warning
from launcher.check.subject import Subject
from launcher.core.format import counted
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
    TENSOR,
    TRAINER,
    TRAINER_MODE,
    TRANSFER,
    N,
)

OWN_GPUS = f"{REWARD_MODEL}.enable_resource_pool"
LEND = f"{TRAINER}.v1.separate_async.hybrid_rollout.enable_switch"
SEQS = f"{ROLLOUT}.max_num_seqs"
CALLS = 1000  # at once that Ray lets an engine's actor take, unless max_num_seqs is larger
CONTROL = 16  # of them that veRL adds to max_num_seqs for itself
RESTORED = ("fsdp", "fsdp2", "veomni", "megatron")
"""Strategies whose weights can be saved and restored."""


def batch_of_updates(subject: Subject) -> Findings:
    """ASYNC-1: with separate_async a batch is a whole number of updates, and the engine has GPUs and gets weights."""
    if not subject.is_separate:
        return
    batch, mini, step = subject.whole(BATCH), subject.whole(MINI), subject.whole(SYNC_STEP)
    if batch is not None and mini is not None and step is not None and batch != mini * step:
        message = (
            f"batch is {batch}, and separate_async requires mini-batch {mini} x {counted(step, 'update')} "
            f"({SYNC_STEP}) = {mini * step}"
        )
        fits = batch % mini == 0
        change = {"trainer.parameter_sync_step": batch // mini} if fits else {"data.train_batch_size": mini * step}
        fix = " and ".join(f"set {field} to {value}" for field, value in change.items())
        yield error("ASYNC-1", message, fix, [BATCH, MINI, SYNC_STEP], change)
    for key, field in ((ENGINE_NODES, "rollout.nodes"), (ENGINE_GPUS, "rollout.gpus")):
        if subject.whole(key) is None:
            message = f"separate_async requires GPUs for the engine alone, but {key} is {subject.get(key)}"
            yield error("ASYNC-1", message, f"set {field} to 1, or trainer.mode to sync", [key], {field: 1})
    size, own = subject.engine_size, subject.engine_gpus
    if own and own < size:
        message = f"an engine spans {gpu_count(size)}, and {gpu_count(own)} are for the engine alone: none starts"
        yield error("ASYNC-1", message, f"set rollout.gpus to {size}, or {TENSOR} to 1", [ENGINE_GPUS, TENSOR])
    elif own and own % size:
        message = f"an engine spans {gpu_count(size)}: {own % size} of the {gpu_count(own)} for engines stay unused"
        yield warning("ASYNC-1", message, f"use a multiple of {size}", [ENGINE_GPUS, TENSOR])
    if subject.get(TRANSFER) == "naive":
        backend = "gloo" if subject.on_cpu else "nccl"
        message = f"separate_async sends weights to other GPUs, which {TRANSFER} = naive does not support"
        fix = f"set rollout.weight_transfer to {backend}, or trainer.mode to sync"
        yield error("ASYNC-1", message, fix, [TRANSFER], {"rollout.weight_transfer": backend})
    if subject.get(f"{REWARD_MODEL}.enable") is True and not subject.get(OWN_GPUS):
        message = "separate_async never pauses its engines, so a reward model cannot share their GPUs"
        fix = "set reward.model_own_gpus to true, with reward.model_gpus and reward.model_nodes"
        yield error("ASYNC-1", message, fix, [OWN_GPUS, TRAINER_MODE])


@of_registry
def transfer(subject: Subject) -> Findings:
    """ASYNC-2: each way of sending weights has an engine that can receive them."""
    backend = subject.text(TRANSFER)
    if backend == "gloo" and not subject.on_cpu:
        message = "the weight transfer 'gloo' is ppo-tui's own and works only on the CPU platform"
        yield error(
            "ASYNC-2", message, "set rollout.weight_transfer to nccl", [TRANSFER], {"rollout.weight_transfer": "nccl"}
        )
    elif subject.on_cpu and backend not in (None, "naive", "gloo"):
        message = f"the weight transfer '{backend}' requires a GPU"
        yield error(
            "ASYNC-2", message, "set rollout.weight_transfer to gloo", [TRANSFER], {"rollout.weight_transfer": "gloo"}
        )
    if backend == "delta_sharded" and subject.get(ENGINE) not in ("vllm", "sglang"):
        message = f"the weight transfer delta_sharded requires vLLM or SGLang, not {subject.get(ENGINE)}"
        yield error("ASYNC-2", message, "set rollout.weight_transfer to nccl", [TRANSFER, ENGINE])


def engines_beside_the_trainer(subject: Subject) -> Findings:
    """ASYNC-3: only separate_async can do without engines on the trainer's GPUs, or lend these GPUs to it."""
    if subject.get(HYBRID) is False and not subject.is_v1:
        message = f"{HYBRID} is false, which the trainer of veRL {subject.version} rejects"
        if subject.at_least("0.9.0"):
            message = f"{HYBRID} is false, which the legacy trainer rejects"
        yield error("ASYNC-3", message, "set trainer.hybrid_engine to true", [HYBRID], {"trainer.hybrid_engine": True})
    elif subject.get(HYBRID) is False and not (subject.is_separate and subject.at_least("0.9.1")):
        mode = f"veRL {subject.version}" if subject.is_separate else subject.trainer_mode
        message = f"{HYBRID} = false has no effect with {mode}: the trainer's GPUs hold an engine"
        yield info("ASYNC-3", message, "remove trainer.hybrid_engine, or set trainer.mode to separate_async", [HYBRID])
    if subject.get(LEND) is True and subject.is_separate and not subject.has_hybrid_engine:
        message = f"{LEND} has no effect: without a hybrid engine the trainer's GPUs cannot generate"
        yield info(
            "ASYNC-3", message, "set trainer.hybrid_engine to true, or trainer.lend_gpus to false", [LEND, HYBRID]
        )
    if subject.get(LEND) is True and subject.is_separate and subject.get(f"{ROLLOUT}.disaggregation.enabled") is True:
        key = f"{ROLLOUT}.disaggregation.enabled"
        message = f"{LEND} does not work with {key}: veRL fails at the start"
        yield error("ASYNC-3", message, "set trainer.lend_gpus to false", [LEND, key], {"trainer.lend_gpus": False})
    if subject.get(TRAINER_MODE) != "separate_async" and any(subject.is_set(key) for key in (ENGINE_NODES, LEND)):
        given = [key for key in (ENGINE_NODES, ENGINE_GPUS, LEND) if subject.is_set(key)]
        if subject.whole(ENGINE_NODES) or subject.get(LEND):
            message = f"{', '.join(given)}: read only by separate_async, and trainer.mode is {subject.trainer_mode}"
            yield info("ASYNC-3", message, "set trainer.mode to separate_async, or remove them", given)


def age(subject: Subject) -> Findings:
    """ASYNC-4: responses that are requested ahead are not too old when their turn comes."""
    mode, limit = subject.trainer_mode, subject.whole(MAX_AGE)
    if mode == "sync" or limit is None or subject.get(OLD_ONES) != "drop":
        return
    key = f"{TRAINER}.v1.{mode}.num_warmup_batches"
    ahead = int(subject.number(key) or 0)
    if ahead + 1 > limit:
        message = (
            f"{key} = {ahead}: a response is trained on {counted(ahead + 1, 'version')} after it was requested, "
            f"and is dropped after {limit} ({MAX_AGE})"
        )
        fix = f"set trainer.max_off_policy_threshold to {ahead + 2}"
        yield warning("ASYNC-4", message, fix, [key, MAX_AGE], {"trainer.max_off_policy_threshold": ahead + 2})


@of_trainer
def adapters(subject: Subject) -> Findings:
    """ASYNC-5: an adapter reaches engines on other GPUs only when it is merged into the weights."""
    merge = f"{MODEL}.lora.merge"
    if subject.is_separate and subject.has_lora and subject.get(merge) is not True:
        message = "separate_async sends weights without the LoRA adapter: its engines never see what is learned"
        yield error(
            "ASYNC-5", message, "set model.lora_merge to true", [merge, TRAINER_MODE], {"model.lora_merge": True}
        )


def weights_put_aside(subject: Subject) -> Findings:
    """ASYNC-6: separate_async saves old weights, which veRL supports for some strategies only."""
    strategy = subject.text(f"{ACTOR}.strategy")
    if not subject.is_separate or strategy in (None, *RESTORED) or subject.get(f"{CORRECTION}.bypass_mode") is True:
        return
    message = f"separate_async cannot put the weights of strategy '{strategy}' aside: veRL fails in the first step"
    fix = "set correction.bypass_mode to true, which needs no old weights, or actor.strategy to fsdp2"
    yield error("ASYNC-6", message, fix, [f"{ACTOR}.strategy", TRAINER_MODE], {"correction.bypass_mode": True})


def determinism(subject: Subject) -> Findings:
    """ASYNC-7: only the legacy trainer takes responses in the order of their prompts, which determinism requires."""
    keys = [
        key
        for key in (f"{ROLLOUT}.full_determinism", f"{ACTOR}.fsdp_config.full_determinism")
        if subject.get(key) is True
    ]
    if keys and subject.is_v1:
        message = (
            f"{keys[0]} does not make results reproducible: veRL {subject.version}'s trainer takes responses in the "
            "order in which they finish"
        )
        yield warning(
            "ASYNC-7", message, "set trainer.use_v1 to false", [*keys, f"{TRAINER}.use_v1"], {"trainer.use_v1": False}
        )
    if subject.get(f"{ROLLOUT}.full_determinism") is True and subject.get(ENGINE) not in (None, "vllm"):
        message = f"{ROLLOUT}.full_determinism is read by vLLM only, not by {subject.get(ENGINE)}"
        yield info(
            "ASYNC-7", message, "set rollout.engine to vllm, or remove it", [f"{ROLLOUT}.full_determinism", ENGINE]
        )


def requests_at_once(subject: Subject) -> Findings:
    """ASYNC-8: an engine still takes veRL's calls while it has all requests of a batch."""
    batch, n, slots = subject.whole(BATCH), subject.whole(N), subject.whole(SEQS)
    gpus = subject.engine_gpus if subject.is_separate else subject.gpus
    engines = gpus // subject.engine_size
    if subject.trainer_mode == "sync" or batch is None or n is None or not engines:
        return
    requests, limit = math.ceil(batch * n / engines), max(CALLS, (slots or 0) + CONTROL)
    if requests < limit:
        return
    message = (
        f"{counted(batch, 'prompt')} x {counted(n, 'response')} over {counted(engines, 'engine')} = "
        f"{counted(requests, 'request')}, and an engine takes {limit} calls at once: "
        "the call that sends new weights may wait forever"
    )
    fix = f"set rollout.max_num_seqs to {requests}, or lower data.train_batch_size or {TENSOR}"
    yield warning("ASYNC-8", message, fix, [BATCH, N, SEQS, TENSOR], {"rollout.max_num_seqs": requests})


RULES = (
    *(batch_of_updates, transfer, engines_beside_the_trainer, age, adapters, weights_put_aside, determinism),
    requests_at_once,
)
