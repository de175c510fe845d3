"""All rules, in the order of rules.toml: so the checklist shows them when nothing is on."""

from launcher.health.catalogue import rules
from launcher.health.rules import (
    critic,
    entropy,
    errors,
    kl,
    length,
    mismatch,
    numbers,
    optimiser,
    responses,
    reward,
    rollout,
    system,
    validation,
)
from launcher.health.rules.base import Rule

_FILES = (critic, entropy, errors, kl, length, mismatch, numbers, optimiser)
_KINDS: dict[str, type[Rule]] = {
    kind.id: kind
    for file in (*_FILES, responses, reward, rollout, system, validation)
    for kind in vars(file).values()
    if isinstance(kind, type) and issubclass(kind, Rule) and hasattr(kind, "id")
}
ALL: tuple[type[Rule], ...] = tuple(_KINDS[id] for id in rules())
