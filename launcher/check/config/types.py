"""Values against the types in veRL's configuration: P24. Hydra accepts any value, and veRL fails much later.

veRL: `verl/base_config.py: BaseConfig` and its subclasses.
"""

from typing import Any

from launcher.check.config.base import Findings
from launcher.check.config.effects import effects
from launcher.check.finding import Level, found
from launcher.check.subject import Subject
from launcher.verl import defaults, hydra

NUMBERS = {
    "trainer.total_training_steps": int,
    "data.seed": int,
    "data.val_batch_size": int,
    "data.gen_batch_size": int,
    "ray_kwargs.ray_init.num_cpus": int,
    "trainer.max_actor_ckpt_to_keep": int,
    "trainer.max_critic_ckpt_to_keep": int,
}
"""Keys outside of configuration classes with the default null, which does not show their type."""


ABOVE_ZERO = ("_parallel_size", "rollout.response_length")
"""Suffixes of keys that veRL divides by, or that the engine requires to be at least 1."""

WHOLE = ("ulysses_sequence_parallel_size", "rollout.response_length")
"""Suffixes of keys that torch or the engine accepts only as integers; 64.0 works for others."""


def types(subject: Subject) -> Findings:
    """P24: numbers are numbers, switches are true or false, blocks are blocks."""
    for key, setting in subject.settings.items():
        value = subject.get(key) if isinstance(setting.value, str) and hydra.refers(setting.value) else setting.value
        if isinstance(value, str) and hydra.refers(value):
            continue  # a value that OmegaConf computes is unknown here
        if value is None or setting.source != "override" or not subject.knows_keys:
            continue  # a field's type was checked when the preset was read
        known, default = defaults.leaf(subject.defaults, key)
        if not known:
            continue
        if isinstance(default, dict) and default and not isinstance(value, dict):
            yield found("P24.block", key=key, value=value, name=next(name for name in default if name[0] != "_"))
            continue
        want = _type(subject, key, default)
        if want in (int, float) and not isinstance(value, (int, float)):
            if any(row.covers(key) and not row.holds(subject) for row in effects()):
                continue  # nothing reads it: KEY-7
            usual = default if isinstance(default, (int, float)) else 1
            yield found("P24.number", key=key, value=value, usual=usual)
        elif want is int and isinstance(value, float):
            level: Level = "error" if key.endswith(WHOLE) else "warning"
            yield found("P24.whole", key=key, value=value, near=round(value), level=level)
        elif want is int and value == 0 and key.endswith(ABOVE_ZERO):
            usual = defaults.resolve(default, key, subject.get)
            yield found("P24.zero", key=key, usual=usual if isinstance(usual, int) and usual > 0 else 1)
        elif want is bool and not isinstance(value, (bool, int)):
            yield found("P24.switch", key=key, value=value)


def _type(subject: Subject, key: str, default: Any) -> type | None:
    """The type of a key in veRL's classes; otherwise, of its default."""
    block, _, name = key.rpartition(".")
    tree = defaults.leaf(subject.defaults, block)[1]
    target = tree.get("_target_", "") if isinstance(tree, dict) else ""
    annotation = subject.facts.classes.get(str(target).rpartition(".")[2], {}).get(name, "")
    plain = annotation.removeprefix("Optional[").removesuffix("]")
    for kind in (bool, int, float):
        if plain == kind.__name__:
            return kind
    if annotation:
        return None
    resolved = defaults.resolve(default, key, subject.get)
    if resolved is None:
        return NUMBERS.get(key)
    return type(resolved) if type(resolved) in (bool, int, float) else None


RULES = (types,)
