"""Values that veRL accepts but that train badly: VALUE-1 to VALUE-7. Usual ranges, and what happens outside them.

Ranges: veRL's examples (`examples/*_trainer/*.sh`), PPO for language models (arXiv 2403.17031), DAPO (2503.14476),
GSPO (2507.18071), LoRA (thinkingmachines.ai/blog/lora). What happened: our recorded runs.
"""

from typing import NamedTuple

from launcher.preflight.config.base import Findings, warning
from launcher.preflight.subject import Subject
from launcher.verl_config import ACTOR, CRITIC, GAMMA, KL_IN_LOSS, KL_IN_REWARD, LOSS_MODE, MODEL, ROLLOUT

_ADAPTIVE = ("Adam", "AdamW", "NAdam", "RAdam", "Adamax", "AdamW8bit", "_AdamW")
_BLOWUP = "a recorded run at 1e-4 (135M, full fine-tuning) collapsed within 16 steps: KL rose from 0 to 0.33"


class _Range(NamedTuple):
    """From the least to the largest that anybody reports to work; what is usual, and what happens outside."""

    least: float
    largest: float
    usual: str
    below: str
    above: str


def _outside(subject: Subject, id: str, key: str, range_: _Range) -> Findings:
    value = subject.number(key)
    if value is None or range_.least <= value <= range_.largest:
        return
    side, happens = ("below", range_.below) if value < range_.least else ("above", range_.above)
    nearest = range_.least if value < range_.least else range_.largest
    message = f"{key} is {value:g}, {side} the usual {range_.usual}: {happens}"
    yield warning(id, message, f"set {key} to {nearest:g}, or to the usual {range_.usual}", [key])


def learning_rates(subject: Subject) -> Findings:
    """VALUE-1: learning rates of Adam: full fine-tuning, LoRA, or a small model trained on the CPU."""
    slow = "almost nothing is learned"
    small = _Range(1e-6, 1e-2, "1e-5 to 1e-3 for a small model from scratch", slow, "the policy collapses")
    lora = _Range(1e-7, 5e-4, "3e-6 to 1e-4 with LoRA", slow, _BLOWUP)
    full = _Range(1e-8, 2e-5, "1e-7 to 5e-6 for full fine-tuning", slow, _BLOWUP)
    value = _Range(
        1e-7, 1e-4, "5e-6 to 2e-5 for the critic", slow, "value estimates jump and advantages turn into noise"
    )
    models = [(ACTOR, subject.number(f"{MODEL}.lora_rank"), full)]
    if subject.has_critic:
        models.append((CRITIC, subject.number(f"{CRITIC}.model.lora_rank"), value))
    for block, rank, usual in models:
        if subject.get(f"{block}.optim.optimizer", "AdamW") in _ADAPTIVE and subject.get(f"{block}.optim.lr") != 0:
            yield from _outside(
                subject, "VALUE-1", f"{block}.optim.lr", small if subject.on_cpu else lora if rank else usual
            )


def kl_coefficients(subject: Subject) -> Findings:
    """VALUE-2: KL coefficients that freeze the policy, or have no effect."""
    below, above = "the reference costs time and has no effect", "the KL penalty outweighs the reward"
    range_ = _Range(1e-5, 1.0, "0.001 to 0.05", below, above)
    for key, switch in ((f"{ACTOR}.kl_loss_coef", KL_IN_LOSS), ("algorithm.kl_ctrl.kl_coef", KL_IN_REWARD)):
        if subject.get(switch) is True:
            yield from _outside(subject, "VALUE-2", key, range_)


def clip_ranges(subject: Subject) -> Findings:
    """VALUE-3: clip ranges of PPO's loss, and of GSPO, which clips whole sequences at about a thousandth."""
    narrow, wide = "nearly every token is clipped", "a single update may move the policy too far"
    ranges = {
        "vanilla": _Range(0.02, 0.5, "0.1 to 0.3", narrow, wide),
        "gspo": _Range(1e-5, 0.02, "3e-4 to 4e-4 for GSPO", narrow, wide),
    }
    if (range_ := ranges.get(subject.get(LOSS_MODE, "vanilla"))) is not None:
        for name in ("clip_ratio_low", "clip_ratio_high"):
            yield from _outside(subject, "VALUE-3", f"{ACTOR}.{name}", range_)


def temperature(subject: Subject) -> Findings:
    """VALUE-4: a temperature that makes responses nearly identical, or noise."""
    range_ = _Range(0.3, 1.5, "0.6 to 1.2", "responses to a prompt are nearly identical", "responses turn into noise")
    yield from _outside(subject, "VALUE-4", f"{ROLLOUT}.temperature", range_)


def entropy_bonus(subject: Subject) -> Findings:
    """VALUE-5: an entropy bonus that outweighs the reward, or is a penalty."""
    above = "at 0.3, the entropy of a recorded run rose from 2.6 to 9.8 in 15 steps, and its reward halved"
    range_ = _Range(0.0, 0.05, "0 to 0.01", "an entropy penalty collapses the policy", above)
    yield from _outside(subject, "VALUE-5", f"{ACTOR}.entropy_coeff", range_)


def epochs(subject: Subject) -> Findings:
    """VALUE-6: many passes over one batch of rollouts."""
    range_ = _Range(1, 8, "1 to 4", "", "later passes train on responses that the policy would no longer generate")
    for block in (ACTOR, *([CRITIC] if subject.has_critic else [])):
        yield from _outside(subject, "VALUE-6", f"{block}.ppo_epochs", range_)


def discounts(subject: Subject) -> Findings:
    """VALUE-7: discounts with which the final reward hardly reaches the first tokens of a response."""
    lost = "the final reward hardly reaches the first tokens"
    if subject.discounts:
        yield from _outside(subject, "VALUE-7", GAMMA, _Range(0.95, 1.0, "1.0", lost, "returns grow"))
    if subject.has_critic:
        yield from _outside(subject, "VALUE-7", "algorithm.lam", _Range(0.5, 1.0, "0.95 to 1.0", lost, "returns grow"))


RULES = (learning_rates, kl_coefficients, clip_ranges, temperature, entropy_bonus, epochs, discounts)
