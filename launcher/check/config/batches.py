"""Batch sizes that veRL refuses at the start: V1 to V4, V6 to V9 and BATCH-2.

veRL: `verl/utils/config.py: validate_config`, `verl/workers/config/actor.py: ActorConfig.validate`,
`verl/workers/config/critic.py: CriticConfig.validate`.
"""

from launcher.check.config.base import Findings, dividing, error, multiples, of_trainer, one_of, warning
from launcher.check.subject import Subject
from launcher.core.format import counted
from launcher.verl.config import (
    ACTOR,
    BATCH,
    CRITIC,
    CRITIC_MICRO,
    CRITIC_MINI,
    DATA,
    DYNAMIC,
    GPUS,
    LOG_PROB,
    MICRO,
    MINI,
    NODES,
    REF,
    REF_LOG_PROB,
    ROLLOUT,
    N,
)


def responses_over_gpus(subject: Subject) -> Findings:
    """V1: the responses of a step divide evenly over the GPUs."""
    batch, n, gpus = subject.whole(BATCH), subject.whole(N), subject.gpus
    if batch is None or n is None or (subject.dynamic and subject.at_least("0.6.0")) or batch * n % gpus == 0:
        return
    better = [size for size in multiples(gpus, batch) if size * n % gpus == 0]
    message = f"batch {batch} x {counted(n, 'response')} = {batch * n} is not divisible by the {counted(gpus, 'GPU')}"
    fix = f"use a batch size of {one_of(better)}"
    yield error("V1", message, fix, [BATCH, N, GPUS, NODES], {"data.train_batch_size": better[0]})


@of_trainer
def micro_of_actor(subject: Subject) -> Findings:
    """V2: the actor's micro-batch size is set once, per GPU."""
    yield from _once(subject, "V2", ACTOR, "ppo_micro_batch_size", MINI)


@of_trainer
def micro_of_log_probs(subject: Subject) -> Findings:
    """V6: the micro-batch size of the log-probabilities is set once, per GPU."""
    yield from _once(subject, "V6", ROLLOUT, "log_prob_micro_batch_size", MINI)


@of_trainer
def micro_of_reference(subject: Subject) -> Findings:
    """V7: the same for the reference, if a KL term uses one."""
    if subject.has_reference:
        yield from _once(subject, "V7", REF, "log_prob_micro_batch_size", MINI)


@of_trainer
def micro_of_critic(subject: Subject) -> Findings:
    """V8: the same for the critic; veRL requires the key although it has no effect from 0.8 on."""
    if subject.has_critic and not subject.get(f"{CRITIC}.use_dynamic_bsz", False):
        yield from _once(subject, "V8", CRITIC, "ppo_micro_batch_size", CRITIC_MINI)


def mini_in_batch(subject: Subject) -> Findings:
    """V3: the actor's mini-batch is not larger than the batch."""
    batch, mini = subject.whole(BATCH), subject.whole(MINI)
    if batch is None or mini is None or mini <= batch:
        return
    if not subject.dynamic:
        message = f"the actor's mini-batch {mini} is larger than the batch {batch}"
        fix = f"use a mini-batch size of {batch} or less"
        yield error("V3", message, fix, [BATCH, MINI], {"actor.ppo_mini_batch_size": batch})
    elif subject.is_v1:
        padding = 1 - batch / (-(-batch // mini) * mini)
        message = (
            f"the actor's mini-batch {mini} is larger than the batch {batch}: veRL pads it, and "
            f"{100 * padding:.0f} % of every update is padding"
        )
        fix = f"use a mini-batch size of {batch} or less"
        yield warning("V3", message, fix, [BATCH, MINI], {"actor.ppo_mini_batch_size": batch})


def mini_of_critic_in_batch(subject: Subject) -> Findings:
    """V9: the critic's mini-batch is not larger than the batch."""
    batch, mini = subject.whole(BATCH), subject.whole(CRITIC_MINI)
    if batch is None or mini is None or mini <= batch or not subject.has_critic:
        return
    # The critic's size follows the actor's: one cause is reported once, by V3.
    if not subject.get(f"{CRITIC}.use_dynamic_bsz", False) and subject.is_set(CRITIC_MINI):
        message = f"the critic's mini-batch {mini} is larger than the batch {batch}"
        fix = f"use a mini-batch size of {batch} or less"
        yield error("V9", message, fix, [BATCH, CRITIC_MINI], {"critic.ppo_mini_batch_size": batch})


def micro_of_all_gpus(subject: Subject) -> Findings:
    """V4: the older micro-batch size over all GPUs divides the mini-batch and leaves no GPU without a row."""
    for block, mini_key in ((ACTOR, MINI), (CRITIC, CRITIC_MINI)):
        key = f"{block}.ppo_micro_batch_size"
        micro, mini = subject.whole(key), subject.whole(mini_key)
        if micro is None or mini is None or subject.dynamic or (block == CRITIC and not subject.has_critic):
            continue
        if mini % micro:
            fix = f"set {key}_per_gpu instead, or set {key} to {one_of(dividing(mini, micro))}"
            yield error("V4", f"mini-batch {mini} is not divisible by {key} = {micro}", fix, [mini_key, key])
        elif micro * subject.sequence_parallel() < subject.gpus:
            message = f"{key} = {micro} leaves some of the {counted(subject.gpus, 'GPU')} without a row"
            yield error("V4", message, f"set {key}_per_gpu instead, which applies to each GPU", [key, GPUS])


def validation_batch(subject: Subject) -> Findings:
    """BATCH-2: a validation batch of 0 prompts is all of them in the v1 trainer, and the others refuse it.

    veRL: `verl/trainer/ppo/v1/trainer_base.py: PPOTrainer._init_dataloader`, `verl/trainer/ppo/ray_trainer.py`.
    """
    key = f"{DATA}.val_batch_size"
    if subject.get(key) == 0 and not subject.is_v1:
        message = f"{key} is 0, which this trainer refuses when it opens the validation data"
        yield error("BATCH-2", message, f"set {key} to null, for all prompts at once", [key])


def _once(subject: Subject, rule: str, block: str, name: str, mini_key: str) -> Findings:
    """One micro-batch size: `name`_per_gpu, not the older one over all GPUs, not both, not none."""
    if subject.dynamic:
        return
    old, new = f"{block}.{name}", f"{block}.{name}_per_gpu"
    older, newer = subject.get(old), subject.get(new)
    if older is not None and newer is not None:
        message = f"{old} and {new} are both set; veRL accepts only one"
        yield error(rule, message, f"remove {old}, the older key, which counts over all GPUs", [old, new])
    elif older is None and newer is None:
        size = _suggested(subject, mini_key)
        field = {
            MICRO: "actor.ppo_micro_batch_size_per_gpu",
            CRITIC_MICRO: "critic.ppo_micro_batch_size_per_gpu",
            LOG_PROB: "rollout.log_prob_micro_batch_size_per_gpu",
            REF_LOG_PROB: "ref.log_prob_micro_batch_size_per_gpu",
        }[new]
        message = f"{new} is not set; veRL requires it unless micro-batches are dynamic"
        fix = f"set it to {size}, or set {DYNAMIC} to true, which requires no micro-batch sizes"
        yield error(rule, message, fix, [new, DYNAMIC], {field: size})
    elif newer is None and block in (ACTOR, ROLLOUT) and subject.at_least("0.8.0"):
        message = (
            f"{old} is set without {new}: veRL {subject.version} accepts it and fails with a bare AssertionError at "
            "model load"
        )
        yield error(rule, message, f"set {new} to {_suggested(subject, mini_key)} instead", [old, new])


def _suggested(subject: Subject, mini_key: str) -> int:
    """A micro-batch that divides everything and is small enough to fit most models: at most 8."""
    mini, n = subject.whole(mini_key) or 1, subject.whole(N) or 1
    share = max(1, mini * n // subject.data_parallel())
    return dividing(share, 8)[0]


RULES = (
    responses_over_gpus,
    micro_of_actor,
    mini_in_batch,
    micro_of_all_gpus,
    micro_of_log_probs,
    micro_of_reference,
    micro_of_critic,
    mini_of_critic_in_batch,
    validation_batch,
)
