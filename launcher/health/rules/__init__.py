"""All rules, in the order in which the checklist shows them when nothing is on."""

from launcher.health.rules import entropy, kl, numbers
from launcher.health.rules.base import Rule

ALL: tuple[type[Rule], ...] = (
    numbers.Numbers,
    kl.PlausibleKl,
    kl.Runaway,
    kl.UpdateSize,
    kl.Controller,
    kl.Bargain,
    kl.Clipped,
    entropy.Collapse,
    entropy.Noise,
    entropy.Exhausted,
)
