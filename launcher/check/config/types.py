"""Values against the types of veRL's configuration: P24. Hydra accepts any value, and veRL fails much later.

veRL: `verl/base_config.py: BaseConfig` and the classes derived from it.
"""

from typing import Any

from launcher.check.config.base import Findings, error, warning
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
"""Keys outside of configuration classes whose default, null, does not show their type."""


def types(subject: Subject) -> Findings:
    """P24: numbers are numbers, switches are true or false, blocks are blocks."""
    for key, setting in subject.settings.items():
        value = subject.get(key) if isinstance(setting.value, str) and hydra.refers(setting.value) else setting.value
        if isinstance(value, str) and hydra.refers(value):
            continue  # what OmegaConf computes is not known here
        if value is None or setting.source != "override" or not subject.knows_keys:
            continue  # a field's type was checked when the preset was read
        found, default = defaults.leaf(subject.defaults, key)
        if not found:
            continue
        if isinstance(default, dict) and default and not isinstance(value, dict):
            message = f"{key} is a block of keys, but is set to {value!r}: veRL fails when it reads the block"
            fix = f"set its keys, such as {key}.{next(name for name in default if name[0] != '_')}"
            yield error("P24", message, fix, [key])
            continue
        want = _type(subject, key, default)
        if want in (int, float) and not isinstance(value, (int, float)):
            usual = default if isinstance(default, (int, float)) else 1
            message = f"{key} is {value!r}, which is not a number: veRL fails with an error that does not name the key"
            yield error("P24", message, f"set {key} to a number, such as {usual}", [key])
        elif want is int and isinstance(value, float) and not value.is_integer():
            message = f"{key} is {value}; veRL expects a whole number"
            yield warning("P24", message, f"set {key} to {round(value)}", [key])
        elif want is bool and not isinstance(value, (bool, int)):
            message = f"{key} is {value!r}, which veRL reads as true, whatever the text is"
            yield warning("P24", message, f"set {key} to true or false", [key])


def _type(subject: Subject, key: str, default: Any) -> type | None:
    """The type that veRL's classes give the key, else that of its default."""
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
