"""All rules, in the order of rules.toml, which is the order of a checklist without flags."""

from launcher.health.catalogue import rules
from launcher.health.rules import critic, entropy, errors, kl, length, mismatch, numbers, reward, system, validation
from launcher.health.rules.base import Rule
from launcher.health.rules.declared import declared

_KINDS: dict[str, type[Rule]] = {
    kind.id: kind
    for file in (critic, entropy, errors, kl, length, mismatch, numbers, reward, system, validation)
    for kind in vars(file).values()
    if isinstance(kind, type) and issubclass(kind, Rule) and hasattr(kind, "id")
}
ALL: tuple[type[Rule], ...] = tuple(declared(data) if data.figures else _KINDS[data.id] for data in rules().values())
