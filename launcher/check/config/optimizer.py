"""Optimizers, learning rates and sharding: P22 and P25; the preset itself rejects other values.

veRL: `verl/workers/config/optimizer.py: build_optimizer`.
"""

from launcher.check import facts
from launcher.check.config.base import Findings, of_keys, of_trainer
from launcher.check.facts import known_names
from launcher.check.finding import Level, found
from launcher.check.subject import Subject
from launcher.core.text import did_you_mean
from launcher.preset.effective import OTHER_ENGINES
from launcher.verl.config import ACTOR, CRITIC, MODEL, REF

WRAPPED = "wrap_policy.transformer_layer_cls_to_wrap"


def _optims(subject: Subject) -> list[str]:
    return [f"{ACTOR}.optim", *([f"{CRITIC}.optim"] if subject.has_critic else [])]


@of_keys
def optimizer(subject: Subject) -> Findings:
    """P22: the optimizer exists; veRL's environment has its package."""
    known = known_names()
    for block in _optims(subject):
        name, module = subject.get(f"{block}.optimizer"), subject.get(f"{block}.optimizer_impl")
        if module == "torch.optim" and isinstance(name, str) and name not in known.optimizers:
            yield found("P22.unknown", name=name, near=did_you_mean(name, known.optimizers), block=block)
        elif module == "torch.optim" and name in known.unusable_optimizers:
            yield found("P22.unusable", name=name, block=block)
        elif (
            module == "torch.optim"
            and name in known.unsharded_optimizers
            and subject.get(f"{block.removesuffix('.optim')}.strategy") == "fsdp2"
        ):
            yield found("P22.unsharded", name=name, block=block)
        elif isinstance(module, str) and module != "torch.optim" and not installed(subject, module):
            package = module.partition(".")[0]
            yield found("P22.package", package=package, python=subject.python, block=block)


def installed(subject: Subject, module: str) -> bool:
    """Whether veRL's environment has the package; True if that is unknown."""
    if subject.verl is None or subject.machine.assumed or not (subject.verl.parent / "torch").is_dir():
        return True
    place = subject.verl.parent / module.partition(".")[0]
    return place.is_dir() or place.with_suffix(".py").is_file()


def learning_rate(subject: Subject) -> Findings:
    """P25: the learning rate is not 0."""
    for block in _optims(subject):
        key = f"{block}.lr"
        if subject.get(key) == 0:
            usual = "1e-6" if block.startswith(ACTOR) else "1e-5"
            yield found("P25", key=key, usual=usual)


def betas(subject: Subject) -> Findings:
    """OPT-1: Adam's betas are two numbers from 0 to below 1."""
    for block in _optims(subject):
        key = f"{block}.betas"
        value = subject.get(key)
        if not isinstance(value, list) or not all(isinstance(each, (int, float)) for each in value):
            continue
        if len(value) != 2 or not all(0 <= each < 1 for each in value):
            yield found("OPT-1", key=key, value=value, group="critic" if block.startswith(CRITIC) else "actor")


@of_keys
def number_types(subject: Subject) -> Findings:
    """OPT-2: veRL knows the names of data types."""
    known = known_names().number_types
    names = ("model_dtype", *(f"mixed_precision.{each}_dtype" for each in ("param", "reduce", "buffer")))
    blocks = [f"{ACTOR}.fsdp_config", *([f"{CRITIC}.fsdp"] if subject.has_critic else [])]
    blocks += [f"{REF}.fsdp_config"] if subject.has_reference and not subject.has_lora else []
    for block in blocks:
        for name in names:
            key = f"{block}.{name}"
            value = subject.get(key)
            if isinstance(value, str) and value not in known:
                yield found("OPT-2", value=value, near=did_you_mean(value, known), key=key)


@of_keys
def unmoved(subject: Subject) -> Findings:
    """OPT-3: settings that together leave the policy unchanged; MOVE-1 flags such a run."""
    if all(subject.flag(f"{MODEL}.{name}") for name in ("use_liger", "use_fused_kernels")):
        yield found("OPT-3.kernels")
    rate = subject.number(f"{ACTOR}.optim.lr")
    if rate and rate < subject.rounding_rate:
        yield found("OPT-3.bf16", lr=rate)


def sharding(subject: Subject) -> Findings:
    """FSDP-1: the shard group size divides the GPUs and is not 0 (`verl/workers/engine/fsdp/utils.py`)."""
    blocks = [("actor", f"{ACTOR}.fsdp_config"), *([("critic", f"{CRITIC}.fsdp")] if subject.has_critic else [])]
    for group, config in blocks:
        size = subject.whole(f"{config}.fsdp_size", 0)
        if size is not None and size < subject.gpus and (size == 0 or subject.gpus % size):
            yield found("FSDP-1", config=config, size=size, gpus=subject.gpus, group=group)


@of_trainer
def layers(subject: Subject) -> Findings:
    """FSDP-4: the layers that FSDP wraps are a list, and at least one is a class of transformers.

    veRL: `verl/utils/fsdp_utils.py: get_fsdp_wrap_policy, apply_fsdp2`; other models bring their own classes.
    """
    own = subject.get(f"{MODEL}.trust_remote_code") is True or subject.get(f"{MODEL}.external_lib")
    transformers = subject.verl.parent / "transformers" if subject.verl and not own else None
    blocks = [(ACTOR, f"{ACTOR}.fsdp_config"), *([(CRITIC, f"{CRITIC}.fsdp")] if subject.has_critic else [])]
    for block, config in blocks:
        value, fsdp = subject.get(key := f"{config}.{WRAPPED}"), subject.get(f"{block}.strategy") == "fsdp"
        names = [value] if isinstance(value, str) else list(map(str, value)) if isinstance(value, list) else []
        if fsdp and isinstance(value, str):
            yield found("FSDP-4.letters", key=key, value=value)
        elif names and transformers and (known := facts.layer_classes(transformers)) and known.isdisjoint(names):
            then = "veRL fails at model load" if fsdp else "no layer is sharded on its own, which costs memory"
            near = did_you_mean(str(names[0]), sorted(known))
            level: Level = "error" if fsdp else "warning"
            yield found("FSDP-4.class", name=names[0], near=near, then=then, key=key, level=level)


@of_trainer
def engines(subject: Subject) -> Findings:
    """FSDP-3: the strategies of other engines require the choice of `model_engine` (0.7.1 on)."""
    if subject.chosen or not subject.at_least("0.7.1"):
        return
    for group, block in (("actor", ACTOR), *([("critic", CRITIC)] if subject.has_critic else [])):
        strategy = subject.text(f"{block}.strategy")
        if strategy in OTHER_ENGINES:
            yield found("FSDP-3", block=block, strategy=strategy, group=group)


RULES = (optimizer, learning_rate, betas, number_types, unmoved, sharding, layers, engines)
