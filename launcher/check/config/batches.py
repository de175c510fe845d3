"""Batch sizes that veRL refuses at the start: V1 to V4, V6 to V9 and BATCH-2.

veRL: `verl/utils/config.py: validate_config`, `verl/workers/config/actor.py: ActorConfig.validate`,
`verl/workers/config/critic.py: CriticConfig.validate`.
"""

from launcher.check.config.base import Findings, dividing, multiples, of_trainer
from launcher.check.finding import found
from launcher.check.subject import Subject
from launcher.verl.config import ACTOR, BATCH, CRITIC, CRITIC_MINI, DATA, MINI, REF, ROLLOUT, N


def responses_over_gpus(subject: Subject) -> Findings:
    """V1: the responses of a step divide evenly over the GPUs."""
    batch, n, gpus = subject.whole(BATCH), subject.whole(N), subject.gpus
    if batch is None or n is None or (subject.dynamic and subject.at_least("0.6.0")) or batch * n % gpus == 0:
        return
    better = [size for size in multiples(gpus, batch) if size * n % gpus == 0]
    yield found("V1", batch=batch, n=n, total=batch * n, gpus=gpus, better=better)


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
    """V7: the reference's micro-batch size is set once, per GPU, if a KL term needs a reference."""
    if subject.has_reference:
        yield from _once(subject, "V7", REF, "log_prob_micro_batch_size", MINI)


@of_trainer
def micro_of_critic(subject: Subject) -> Findings:
    """V8: the critic's micro-batch size is set once, per GPU; veRL requires it, though without effect from 0.8 on."""
    if subject.has_critic and not subject.get(f"{CRITIC}.use_dynamic_bsz", False):
        yield from _once(subject, "V8", CRITIC, "ppo_micro_batch_size", CRITIC_MINI)


def mini_in_batch(subject: Subject) -> Findings:
    """V3: the actor's mini-batch is not larger than the batch."""
    batch, mini = subject.whole(BATCH), subject.whole(MINI)
    if batch is None or mini is None or mini <= batch:
        return
    if not subject.dynamic:
        yield found("V3.large", mini=mini, batch=batch)
    elif subject.is_v1:
        padding = 1 - batch / (-(-batch // mini) * mini)
        yield found("V3.padded", mini=mini, batch=batch, padding=100 * padding)


def mini_of_critic_in_batch(subject: Subject) -> Findings:
    """V9: the critic's mini-batch is not larger than the batch."""
    batch, mini = subject.whole(BATCH), subject.whole(CRITIC_MINI)
    if batch is None or mini is None or mini <= batch or not subject.has_critic:
        return
    # The critic's size follows the actor's: one cause is reported once, by V3.
    if not subject.get(f"{CRITIC}.use_dynamic_bsz", False) and subject.is_set(CRITIC_MINI):
        yield found("V9", mini=mini, batch=batch)


def micro_of_all_gpus(subject: Subject) -> Findings:
    """V4: the older micro-batch size over all GPUs divides the mini-batch and gives each GPU a row."""
    for block, mini_key in ((ACTOR, MINI), (CRITIC, CRITIC_MINI)):
        key = f"{block}.ppo_micro_batch_size"
        micro, mini = subject.whole(key), subject.whole(mini_key)
        if micro is None or mini is None or subject.dynamic or (block == CRITIC and not subject.has_critic):
            continue
        if mini % micro:
            yield found("V4.uneven", mini=mini, key=key, micro=micro, better=dividing(mini, micro), mini_key=mini_key)
        elif micro * subject.sequence_parallel() < subject.gpus:
            yield found("V4.small", key=key, micro=micro, gpus=subject.gpus)


def validation_batch(subject: Subject) -> Findings:
    """BATCH-2: a validation batch of 0 prompts means all prompts in the v1 trainer; others refuse it.

    veRL: `verl/trainer/ppo/v1/trainer_base.py: PPOTrainer._init_dataloader`, `verl/trainer/ppo/ray_trainer.py`.
    """
    key = f"{DATA}.val_batch_size"
    if subject.get(key) == 0 and not subject.is_v1:
        yield found("BATCH-2")


def _once(subject: Subject, rule: str, block: str, name: str, mini_key: str) -> Findings:
    """One micro-batch size: `name`_per_gpu instead of the older one over all GPUs; exactly one of both."""
    if subject.dynamic:
        return
    old, new = f"{block}.{name}", f"{block}.{name}_per_gpu"
    older, newer = subject.get(old), subject.get(new)
    if older is not None and newer is not None:
        yield found(f"{rule}.both", old=old, new=new)
    elif older is None and newer is None:
        yield found(f"{rule}.unset", new=new, size=_suggested(subject, mini_key))
    elif newer is None and block in (ACTOR, ROLLOUT) and subject.at_least("0.8.0"):
        yield found(f"{rule}.old", old=old, new=new, version=subject.version, size=_suggested(subject, mini_key))


def _suggested(subject: Subject, mini_key: str) -> int:
    """A micro-batch that divides everything and fits most models: at most 8."""
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
