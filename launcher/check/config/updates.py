"""How passes split a batch: P8 to P14. veRL fails only in the first step.

veRL: `verl/workers/engine_workers.py: TrainingWorker.train_mini_batch`, `verl/workers/engine/utils.py:
prepare_micro_batches`, `verl/trainer/ppo/v1/trainer_base.py: _get_required_batch_multiple`; up to 0.7
`verl/workers/fsdp_workers.py: ActorRolloutRefWorker.__init__`.
"""

import math
from collections.abc import Iterator

from launcher.check.config.base import Findings, dividing, multiples
from launcher.check.finding import found
from launcher.check.subject import Subject
from launcher.core.format import counted
from launcher.verl.config import (
    ACTOR,
    BATCH,
    CRITIC,
    CRITIC_MICRO,
    CRITIC_MINI,
    DATA,
    LOG_PROB,
    MICRO,
    MINI,
    REF_LOG_PROB,
    ROLLOUT,
    TRAINER,
    N,
)

_FEW_PROMPTS, _MOST_UPDATES = 8, 32
WORKERS = f"{ROLLOUT}.agent.num_workers"


def _minis(subject: Subject) -> Iterator[tuple[str, int]]:
    """The mini-batches that are set: the actor's, and an independent critic's."""
    for key in (MINI, CRITIC_MINI):
        mini = subject.whole(key)
        if mini is not None and (key == MINI or (subject.has_critic and subject.is_set(key))):
            yield key, mini


def mini_over_gpus(subject: Subject) -> Findings:
    """P11: the responses of a mini-batch divide evenly over the GPUs (0.8 on)."""
    if not subject.at_least("0.8.0"):
        return
    n, shares = subject.whole(N), subject.data_parallel()
    for key, mini in _minis(subject):
        if n is None or mini * n % shares == 0:
            continue
        better = multiples(shares, mini)
        yield found("P11", mini=mini, n=n, total=mini * n, shares=shares, better=better, key=key)


def micro_in_mini(subject: Subject) -> Findings:
    """P10: a GPU's share of a mini-batch divides evenly into micro-batches (0.8 on)."""
    mini, n, micro = subject.whole(MINI), subject.whole(N), subject.whole(MICRO)
    shares = subject.data_parallel()
    if mini is None or n is None or micro is None or subject.dynamic or not subject.at_least("0.8.0"):
        return
    if mini * n % shares or mini * n // shares % micro == 0:
        return
    share = mini * n // shares
    better = dividing(share, micro)
    yield found("P10", share=_share("mini-batch", mini, n, shares), micro=micro, better=better)


def log_probs_in_batch(subject: Subject) -> Findings:
    """P8: a GPU's share of the batch divides evenly into micro-batches for the log-probabilities (0.8 on)."""
    bypass = subject.get("algorithm.rollout_correction.bypass_mode", False)
    if not (bypass and not (subject.has_lora and subject.has_reference)):
        yield from _passes(subject, "P8", LOG_PROB)


def reference_in_batch(subject: Subject) -> Findings:
    """P9: the reference's batch also divides, unless the reference is the actor without its adapter (0.8 on)."""
    if subject.has_reference and not subject.has_lora:
        yield from _passes(subject, "P9", REF_LOG_PROB)


def _passes(subject: Subject, rule: str, key: str) -> Findings:
    micro, shares, sizes = subject.whole(key), subject.data_parallel(), _padded(subject)
    if micro is None or subject.dynamic or not subject.at_least("0.8.0"):
        return
    cut = [size // shares for size in sizes if size % shares == 0]
    wrong = next((share for share in cut if share % micro), None)
    if wrong is None:
        return
    batch, n = subject.portion or 0, subject.whole(N) or 0
    filled = f", padded to {wrong * shares}," if wrong * shares != batch * n else ""
    gpus = f" over {counted(shares, 'GPU')}" if shares > 1 else ""
    better = dividing(math.gcd(*cut), micro)
    what = "batch" if subject.updates_a_step == 1 else "mini-batch"
    yield found(rule, share=f"{_share(what, batch, n, 1)}{filled}{gpus}", micro=micro, better=better)


def _padded(subject: Subject) -> list[int]:
    """Responses per pass of the trainer after padding: during the critic's warm-up, and after it."""
    batch, n, mini = subject.portion, subject.whole(N), subject.whole(MINI)
    if batch is None or n is None or mini is None:
        return []
    if not subject.is_v1:
        return [batch * n]
    step = subject.data_parallel()
    if subject.has_critic:
        step = math.lcm(step, (subject.whole(CRITIC_MINI) or mini) * n)
    steps = [math.lcm(step, mini * n)]
    if (subject.whole(f"{TRAINER}.critic_warmup") or 0) > 1:
        steps.insert(0, step)
    return [-(-batch * n // step) * step for step in steps]


def same_micro(subject: Subject) -> Findings:
    """RATIO-1: with one update per batch, both passes have the same micro-batches, so that the ratio is exactly 1."""
    micro, other = subject.whole(MICRO), subject.whole(LOG_PROB)
    once = subject.portion == subject.whole(MINI) and (subject.whole(f"{ACTOR}.ppo_epochs") or 1) == 1
    bypass = subject.get("algorithm.rollout_correction.bypass_mode", False)
    if subject.dynamic or bypass or not once or micro is None or other is None or micro == other:
        return
    yield found("RATIO-1", micro=micro, other=other)


def few_prompts(subject: Subject) -> Findings:
    """BATCH-3: a step does not consist of dozens of updates with a few prompts each."""
    batch, mini = subject.whole(BATCH), subject.whole(MINI)
    if batch is None or not mini or mini >= _FEW_PROMPTS or batch < _MOST_UPDATES * mini:
        return
    yield found("BATCH-3", updates=batch // mini, mini=mini, better=dividing(batch, max(batch // 16, 1)))


def minis_in_batch(subject: Subject) -> Findings:
    """P12: the batch is a multiple of the mini-batch; the v1 trainer pads it, others fail (0.8 on)."""
    batch, n = subject.whole(BATCH), subject.whole(N)
    if batch is None or n is None or not subject.at_least("0.8.0"):
        return
    for key, mini in _minis(subject):
        if mini > batch or batch % mini == 0:
            continue
        better, padded = dividing(batch, mini), -(-batch // mini) * mini
        if subject.is_v1:
            yield found(
                "P12.padded",
                batch=batch,
                mini=mini,
                padding=(padded - batch) * n,
                share=100 * (1 - batch / padded),
                better=better,
                key=key,
            )
        else:
            yield found("P12.uneven", batch=batch, mini=mini, better=better, key=key)


def fetches_in_batch(subject: Subject) -> Findings:
    """BATCH-1: the batch is a multiple of gen_batch_size (v1 trainer)."""
    key = f"{DATA}.gen_batch_size"
    batch, portion = subject.whole(BATCH), subject.whole(key)
    sampler = subject.get(f"{TRAINER}.v1.sampler.sync_refill_failed_groups", False)
    alone = subject.get(f"{TRAINER}.v1.trainer_mode", "sync") != "sync" or sampler
    if batch is None or portion is None or not subject.is_v1 or batch % portion == 0:
        return
    if alone or subject.get("algorithm.filter_groups.enable") is True:
        return  # veRL takes 1 then, whatever is set
    better = dividing(batch, portion)
    yield found("BATCH-1", batch=batch, portion=portion, better=better)


def normalised_micro(subject: Subject) -> Findings:
    """P13: up to 0.7, a mini-batch is divided over the GPUs, then into micro-batches."""
    if subject.at_least("0.8.0") or subject.dynamic:
        return
    n, gpus = subject.whole(N), subject.gpus
    pairs = [(MINI, MICRO, subject.sequence_parallel())]
    if subject.has_critic:
        pairs.append((CRITIC_MINI, CRITIC_MICRO, subject.sequence_parallel(CRITIC)))
    for mini_key, micro_key, parallel in pairs:
        mini, micro = subject.whole(mini_key), subject.whole(micro_key)
        if mini is None or micro is None or n is None:
            continue
        share = mini * n * parallel // gpus
        if share == 0:
            yield found("P13.none", mini=mini, n=n, gpus=gpus, mini_key=mini_key)
        elif share % micro:
            better = dividing(share, micro)
            yield found(
                "P13.uneven",
                share=_share("mini-batch", mini, n, gpus // parallel),
                micro=micro,
                better=better,
                mini_key=mini_key,
                micro_key=micro_key,
            )


def responses_over_workers(subject: Subject) -> Findings:
    """P14: the responses of a step divide evenly over the agent workers, except in the v1 trainer."""
    batch, n, workers = subject.whole(BATCH), subject.whole(N), subject.whole(WORKERS)
    if batch is None or n is None or workers is None or subject.is_v1 or batch * n % workers == 0:
        return
    if not subject.at_least("0.7.0") and subject.get(f"{ROLLOUT}.mode") != "async":
        return
    better = dividing(batch * n, workers)
    yield found("P14", batch=batch, n=n, total=batch * n, workers=workers, better=better)


def _share(what: str, size: int, n: int, shares: int) -> str:
    """`mini-batch 64 x 5 responses over 8 GPUs = 40`, shorter if a factor is 1."""
    responses = f" x {counted(n, 'response')}" if n > 1 else ""
    gpus = f" over {counted(shares, 'GPU')}" if shares > 1 else ""
    total = f" = {size * n // shares}" if responses or gpus else ""
    return f"{what} {size}{responses}{gpus}{total}"


RULES = (
    mini_over_gpus,
    micro_in_mini,
    log_probs_in_batch,
    reference_in_batch,
    same_micro,
    few_prompts,
    minis_in_batch,
    fetches_in_batch,
    normalised_micro,
    responses_over_workers,
)
