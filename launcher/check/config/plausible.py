"""Values that veRL accepts but that train badly: VALUE-1 to VALUE-7. Usual ranges, and what happens outside them.

Ranges: veRL's examples (`examples/*_trainer/*.sh`), PPO for language models (arXiv 2403.17031), DAPO (2503.14476),
GSPO (2507.18071), LoRA (thinkingmachines.ai/blog/lora). What happened: our recorded runs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from launcher.check.config.base import warning
from launcher.check.finding import Finding
from launcher.preset.effective import EffectiveConfig
from launcher.preset.schema import BY_KEY
from launcher.preset.yaml_text import text_of, value_of
from launcher.verl.config import ACTOR, CRITIC, GAMMA, KL_IN_LOSS, KL_IN_REWARD, LOSS_MODE, MODEL, ROLLOUT

_ADAPTIVE = ("Adam", "AdamW", "NAdam", "RAdam", "Adamax", "AdamW8bit", "_AdamW")
_BLOWUP = "a recorded run at 1e-4 (135M, full fine-tuning) collapsed within 16 steps: KL rose from 0 to 0.33"


class _Range(NamedTuple):
    """From the least to the largest that anybody reports to work; what is usual and for whom, what happens outside."""

    least: float
    largest: float
    usual: tuple[str, str]
    below: str
    above: str
    of: str = ""

    @property
    def words(self) -> str:
        """`1e-7 to 5e-6 for full fine-tuning`."""
        return " to ".join(dict.fromkeys(self.usual)) + (f" {self.of}" if self.of else "")


@dataclass(frozen=True)
class Unusual(Finding):
    """`now` is the value and what is usual, without the key: `3, above the usual 0.6 to 1.2`."""

    now: str = ""


def _outside(config: EffectiveConfig, id: str, key: str, range_: _Range) -> Iterator[Unusual]:
    value = config.number(key)
    if value is None or range_.least <= value <= range_.largest:
        return
    low = value < range_.least
    side, happens = ("below", range_.below) if low else ("above", range_.above)
    nearest = range_.usual[0 if low else 1]
    now = f"{text_of(int(value) if value.is_integer() else value)}, {side} the usual {range_.words}"
    change = {BY_KEY[key].name: value_of(nearest)} if key in BY_KEY else None
    finding = warning(id, f"{key} is {now}: {happens}", f"set {key} to {nearest}", [key], change)
    yield Unusual(**vars(finding), now=now)


def unusual(config: EffectiveConfig) -> list[Unusual]:
    """The settings that nobody reports to work, each with the nearest usual value as its change."""
    return [finding for rule in RULES for finding in rule(config) if finding.change]


def learning_rates(config: EffectiveConfig) -> Iterator[Unusual]:
    """VALUE-1: learning rates of Adam: full fine-tuning, LoRA, or a small model trained on the CPU."""
    slow = "almost nothing is learned"
    small = _Range(1e-6, 1e-2, ("1e-5", "1e-3"), slow, "the policy collapses", "for a small model from scratch")
    lora = _Range(1e-7, 5e-4, ("3e-6", "1e-4"), slow, _BLOWUP, "with LoRA")
    full = _Range(1e-8, 2e-5, ("1e-7", "5e-6"), slow, _BLOWUP, "for full fine-tuning")
    noise = "value estimates jump and advantages turn into noise"
    value = _Range(1e-7, 1e-4, ("5e-6", "2e-5"), slow, noise, "for the critic")
    models = [(ACTOR, config.number(f"{MODEL}.lora_rank"), full)]
    if config.has_critic:
        models.append((CRITIC, config.number(f"{CRITIC}.model.lora_rank"), value))
    for block, rank, usual in models:
        if config.get(f"{block}.optim.optimizer", "AdamW") in _ADAPTIVE and config.get(f"{block}.optim.lr") != 0:
            yield from _outside(
                config, "VALUE-1", f"{block}.optim.lr", small if config.on_cpu else lora if rank else usual
            )


def kl_coefficients(config: EffectiveConfig) -> Iterator[Unusual]:
    """VALUE-2: KL coefficients that freeze the policy, or have no effect."""
    below, above = "the reference costs time and has no effect", "the KL penalty outweighs the reward"
    range_ = _Range(1e-5, 1.0, ("0.001", "0.05"), below, above)
    for key, switch in ((f"{ACTOR}.kl_loss_coef", KL_IN_LOSS), ("algorithm.kl_ctrl.kl_coef", KL_IN_REWARD)):
        if config.get(switch) is True:
            yield from _outside(config, "VALUE-2", key, range_)


def clip_ranges(config: EffectiveConfig) -> Iterator[Unusual]:
    """VALUE-3: clip ranges of PPO's loss, and of GSPO, which clips whole sequences at about a thousandth."""
    narrow, wide = "nearly every token is clipped", "a single update may move the policy too far"
    ranges = {
        "vanilla": _Range(0.02, 0.5, ("0.1", "0.3"), narrow, wide),
        "gspo": _Range(1e-5, 0.02, ("3e-4", "4e-4"), narrow, wide, "for GSPO"),
    }
    if (range_ := ranges.get(config.get(LOSS_MODE, "vanilla"))) is not None:
        for name in ("clip_ratio_low", "clip_ratio_high"):
            yield from _outside(config, "VALUE-3", f"{ACTOR}.{name}", range_)


def temperature(config: EffectiveConfig) -> Iterator[Unusual]:
    """VALUE-4: a temperature that makes responses nearly identical, or noise."""
    same = "responses to a prompt are nearly identical"
    range_ = _Range(0.3, 1.5, ("0.6", "1.2"), same, "responses turn into noise")
    yield from _outside(config, "VALUE-4", f"{ROLLOUT}.temperature", range_)


def entropy_bonus(config: EffectiveConfig) -> Iterator[Unusual]:
    """VALUE-5: an entropy bonus that outweighs the reward, or is a penalty."""
    above = "at 0.3, the entropy of a recorded run rose from 2.6 to 9.8 in 15 steps, and its reward halved"
    range_ = _Range(0.0, 0.05, ("0", "0.01"), "an entropy penalty collapses the policy", above)
    yield from _outside(config, "VALUE-5", f"{ACTOR}.entropy_coeff", range_)


def epochs(config: EffectiveConfig) -> Iterator[Unusual]:
    """VALUE-6: many passes over one batch of rollouts."""
    range_ = _Range(1, 8, ("1", "4"), "", "later passes train on responses that the policy would no longer generate")
    for block in (ACTOR, *([CRITIC] if config.has_critic else [])):
        yield from _outside(config, "VALUE-6", f"{block}.ppo_epochs", range_)


def discounts(config: EffectiveConfig) -> Iterator[Unusual]:
    """VALUE-7: discounts with which the final reward hardly reaches the first tokens of a response."""
    lost = "the final reward hardly reaches the first tokens"
    if config.discounts:
        yield from _outside(config, "VALUE-7", GAMMA, _Range(0.95, 1.0, ("1.0", "1.0"), lost, "returns grow"))
    if config.has_critic:
        yield from _outside(config, "VALUE-7", "algorithm.lam", _Range(0.5, 1.0, ("0.95", "1.0"), lost, "returns grow"))


RULES = (learning_rates, kl_coefficients, clip_ranges, temperature, entropy_bonus, epochs, discounts)
