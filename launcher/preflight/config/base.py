"""What the rules share: how values are read, how findings are made, which numbers would work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from launcher.preflight.finding import Finding
from launcher.preflight.subject import Subject
from launcher.text import did_you_mean

Findings = Iterator[Finding]

ACTOR, ROLLOUT, REF = "actor_rollout_ref.actor", "actor_rollout_ref.rollout", "actor_rollout_ref.ref"
MODEL, CRITIC, TRAINER, DATA = "actor_rollout_ref.model", "critic", "trainer", "data"

BATCH, N, NODES, GPUS = (f"{DATA}.train_batch_size", f"{ROLLOUT}.n", f"{TRAINER}.nnodes", f"{TRAINER}.n_gpus_per_node")
MINI, MICRO = f"{ACTOR}.ppo_mini_batch_size", f"{ACTOR}.ppo_micro_batch_size_per_gpu"
CRITIC_MINI, CRITIC_MICRO = f"{CRITIC}.ppo_mini_batch_size", f"{CRITIC}.ppo_micro_batch_size_per_gpu"
LOG_PROB, REF_LOG_PROB = (f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu", f"{REF}.log_prob_micro_batch_size_per_gpu")
DYNAMIC = f"{ACTOR}.use_dynamic_bsz"


def error(id: str, keys: Sequence[str], message: str, fix: str, change: Mapping[str, Any] | None = None) -> Finding:
    """A finding that stops the run."""
    return Finding(id, "config", "error", tuple(keys), message, fix, change)


def warning(id: str, keys: Sequence[str], message: str, fix: str, change: Mapping[str, Any] | None = None) -> Finding:
    """A finding that harms the run, or may."""
    return Finding(id, "config", "warning", tuple(keys), message, fix, change)


def info(id: str, keys: Sequence[str], message: str, fix: str) -> Finding:
    """A finding that a person should know of."""
    return Finding(id, "config", "info", tuple(keys), message, fix)


def whole(subject: Subject, key: str, least: int = 1) -> int | None:
    """The value of a key that is a whole number of at least `least`; None for anything else.

    What is no number is told by the rule about types; no other rule has anything to say about it.
    """
    value = subject.value(key)
    return value if type(value) is int and value >= least else None


def dynamic(subject: Subject) -> bool:
    """Whether the actor's micro-batches are filled by tokens."""
    return bool(subject.value(DYNAMIC, False))


def has_critic(subject: Subject) -> bool:
    """Whether a critic is trained: said, or because the advantage is GAE."""
    said = subject.value("critic.enable")
    return bool(said) if said is not None else subject.value("algorithm.adv_estimator") == "gae"


def has_reference(subject: Subject) -> bool:
    """Whether a reference policy is needed: for the KL in the reward or in the loss."""
    return bool(subject.value("algorithm.use_kl_in_reward") or subject.value(f"{ACTOR}.use_kl_loss"))


def has_lora(subject: Subject) -> bool:
    """Whether the actor trains an adapter; the reference is then the actor without it."""
    ranks = (whole(subject, f"{MODEL}.lora_rank"), whole(subject, f"{MODEL}.lora.rank"))
    return any(ranks) or subject.value(f"{MODEL}.lora_adapter_path") is not None


def is_v1(subject: Subject) -> bool:
    """Whether veRL's newer trainer (0.9) runs."""
    return subject.at_least("0.9.0") and bool(subject.value(f"{TRAINER}.use_v1", True))


def is_fsdp(subject: Subject) -> bool:
    """Whether veRL's default engine is used: the tree of keys that is known here belongs to it."""
    return bool(subject.value("model_engine", "dp") == "dp")


def sequence_parallel(subject: Subject) -> int:
    """GPUs that share one sequence of the actor."""
    return max(
        whole(subject, f"{ACTOR}.ulysses_sequence_parallel_size") or 1,
        whole(subject, f"{ACTOR}.fsdp_config.ulysses_sequence_parallel_size") or 1,
    )


def data_parallel(subject: Subject) -> int:
    """Shares into which a batch is cut for the actor."""
    return max(1, subject.gpus // sequence_parallel(subject))


def dividing(size: int, wish: int) -> list[int]:
    """The divisors of `size` on both sides of `wish`, the smaller first: `dividing(64, 24)` is [16, 32]."""
    divisors = [number for number in range(1, size + 1) if size % number == 0]
    below = [number for number in divisors if number <= wish]
    above = [number for number in divisors if number > wish]
    return below[-1:] + above[:1]


def multiples(step: int, wish: int) -> list[int]:
    """The multiples of `step` on both sides of `wish`, the smaller first: `multiples(8, 60)` is [56, 64]."""
    below = wish // step * step
    return [number for number in (below, below + step) if number > 0]


def one_of(numbers: Sequence[Any]) -> str:
    """`16 or 32`."""
    return " or ".join(str(number) for number in numbers)


def gpu_count(count: int) -> str:
    """`1 GPU`, `8 GPUs`."""
    return "1 GPU" if count == 1 else f"{count} GPUs"


def unknown_name(subject: Subject, id: str, key: str, known: Sequence[str], what: str, when: str) -> Findings:
    """An error when the value of `key` is none of the `known` names; nothing when no names are known."""
    value = subject.value(key)
    if value is None or not known or value in known:
        return
    names = ", ".join(known)
    yield error(
        id,
        [key],
        f"'{value}' is not {what}{did_you_mean(str(value), known)}: veRL {subject.version} {when}",
        f"set {key} to one of {names}",
    )
