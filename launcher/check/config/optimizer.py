"""Optimizers, learning rates and sharding: P22 and P25; the preset itself rejects the rest.

veRL: `verl/workers/config/optimizer.py: build_optimizer`.
"""

from launcher.check import facts
from launcher.check.config.base import Findings, error, gpu_count, of_keys, of_trainer, warning
from launcher.check.facts import known_names
from launcher.check.subject import Subject
from launcher.core.text import did_you_mean
from launcher.preset.effective import OTHER_ENGINES
from launcher.verl.config import ACTOR, CRITIC, GPUS, MODEL, NODES

WRAPPED = "wrap_policy.transformer_layer_cls_to_wrap"


def _optims(subject: Subject) -> list[str]:
    return [f"{ACTOR}.optim", *([f"{CRITIC}.optim"] if subject.has_critic else [])]


@of_keys
def optimizer(subject: Subject) -> Findings:
    """P22: the optimizer exists; one from another package is installed in veRL's environment."""
    known = known_names()
    for block in _optims(subject):
        name, module = subject.get(f"{block}.optimizer"), subject.get(f"{block}.optimizer_impl")
        if module == "torch.optim" and isinstance(name, str) and name not in known.optimizers:
            message = f"torch.optim has no '{name}'{did_you_mean(name, known.optimizers)}: veRL fails at model load"
            yield error("P22", message, f"set {block}.optimizer to AdamW", [f"{block}.optimizer"])
        elif module == "torch.optim" and name in known.unusable_optimizers:
            message = (
                f"veRL does not support {name}: it passes a weight decay and all parameters, and fails at model load"
            )
            yield error("P22", message, f"set {block}.optimizer to AdamW", [f"{block}.optimizer"])
        elif (
            module == "torch.optim"
            and name in known.unsharded_optimizers
            and subject.get(f"{block.removesuffix('.optim')}.strategy") == "fsdp2"
        ):
            message = f"{name} does not work on weights that fsdp2 shards: veRL fails in the first update"
            yield error("P22", message, f"set {block}.optimizer to AdamW", [f"{block}.optimizer"])
        elif isinstance(module, str) and module != "torch.optim" and not installed(subject, module):
            package = module.partition(".")[0]
            message = f"the optimizer's package '{package}' is not installed in veRL's environment"
            fix = f"run `{subject.python} -m pip install {package}`, or set {block}.optimizer_impl to torch.optim"
            yield error("P22", message, fix, [f"{block}.optimizer_impl"])


def installed(subject: Subject, module: str) -> bool:
    """Whether veRL's environment has the package; True if that is unknown."""
    if subject.verl is None or subject.machine.assumed or not (subject.verl.parent / "torch").is_dir():
        return True
    place = subject.verl.parent / module.partition(".")[0]
    return place.is_dir() or place.with_suffix(".py").is_file()


def learning_rate(subject: Subject) -> Findings:
    """P25: with a learning rate of 0, nothing is learned."""
    for block in _optims(subject):
        key = f"{block}.lr"
        if subject.get(key) == 0:
            usual = "1e-6" if block.startswith(ACTOR) else "1e-5"
            yield warning("P25", f"{key} is 0: nothing is learned", f"set {key} to {usual}", [key])


def betas(subject: Subject) -> Findings:
    """OPT-1: Adam's betas are two numbers from 0 to below 1."""
    for block in _optims(subject):
        key = f"{block}.betas"
        value = subject.get(key)
        if not isinstance(value, list) or not all(isinstance(each, (int, float)) for each in value):
            continue
        if len(value) != 2 or not all(0 <= each < 1 for each in value):
            message = (
                f"{key} is {value}; Adam requires two numbers from 0 to below 1: veRL fails at model load or in the "
                "first update"
            )
            fix = f"set {key} to [0.9,0.999]"
            change = {f"{'critic' if block.startswith(CRITIC) else 'actor'}.betas": [0.9, 0.999]}
            yield error("OPT-1", message, fix, [key], change)


@of_keys
def number_types(subject: Subject) -> Findings:
    """OPT-2: data types have names that veRL recognizes."""
    known = known_names().number_types
    names = ("model_dtype", *(f"mixed_precision.{each}_dtype" for each in ("param", "reduce", "buffer")))
    blocks = {"actor": f"{ACTOR}.fsdp_config", **({"critic": f"{CRITIC}.fsdp"} if subject.has_critic else {})}
    for group, block in blocks.items():
        for name in names:
            key = f"{block}.{name}"
            value = subject.get(key)
            if isinstance(value, str) and value not in known:
                message = (
                    f"veRL does not recognize the data type '{value}'{did_you_mean(value, known)}: it fails at model "
                    "load"
                )
                fix = f"set {key} to fp32 or bf16"
                change = {f"{group}.model_dtype": "fp32"} if name == "model_dtype" else None
                yield error("OPT-2", message, fix, [key], change)


def sharding(subject: Subject) -> Findings:
    """FSDP-1: the shard group size divides the GPUs, and is not 0.

    veRL: `verl/workers/engine/fsdp/utils.py: create_device_mesh`.
    """
    blocks = [("actor", f"{ACTOR}.fsdp_config"), *([("critic", f"{CRITIC}.fsdp")] if subject.has_critic else [])]
    for group, config in blocks:
        size = subject.whole(f"{config}.fsdp_size", 0)
        if size is not None and size < subject.gpus and (size == 0 or subject.gpus % size):
            message = f"{config}.fsdp_size is {size}, which does not divide the {gpu_count(subject.gpus)}"
            fix = f"set {config}.fsdp_size to -1, for all GPUs"
            yield error("FSDP-1", message, fix, [f"{config}.fsdp_size", GPUS, NODES], {f"{group}.fsdp_size": -1})


@of_trainer
def layers(subject: Subject) -> Findings:
    """FSDP-4: the layers that FSDP wraps are named in a list, and at least one is a class of transformers.

    veRL: `verl/utils/fsdp_utils.py: get_fsdp_wrap_policy, apply_fsdp2`; other models bring classes of their own.
    """
    own = subject.get(f"{MODEL}.trust_remote_code") is True or subject.get(f"{MODEL}.external_lib")
    transformers = subject.verl.parent / "transformers" if subject.verl and not own else None
    blocks = [(ACTOR, f"{ACTOR}.fsdp_config"), *([(CRITIC, f"{CRITIC}.fsdp")] if subject.has_critic else [])]
    for block, config in blocks:
        value, fsdp = subject.get(key := f"{config}.{WRAPPED}"), subject.get(f"{block}.strategy") == "fsdp"
        names = [value] if isinstance(value, str) else list(map(str, value)) if isinstance(value, list) else []
        if fsdp and isinstance(value, str):
            message = f"{key} is the text {value}, which FSDP 1 reads letter by letter: veRL fails at model load"
            yield error("FSDP-4", message, f"use a list: {key}=[{value}]", [key])
        elif names and transformers and (known := facts.layer_classes(transformers)) and known.isdisjoint(names):
            then = "veRL fails at model load" if fsdp else "no layer is sharded on its own, which costs memory"
            message = f"transformers has no class '{names[0]}'{did_you_mean(str(names[0]), sorted(known))}: {then}"
            fix = f"set {key} to the model's decoder layer, or remove it: veRL then takes the right one"
            yield (error if fsdp else warning)("FSDP-4", message, fix, [key])


@of_trainer
def engines(subject: Subject) -> Findings:
    """FSDP-3: the strategies of other engines come with the choice of `model_engine` (0.7.1 on)."""
    if subject.chosen or not subject.at_least("0.7.1"):
        return
    for group, block in (("actor", ACTOR), *([("critic", CRITIC)] if subject.has_critic else [])):
        strategy = subject.text(f"{block}.strategy")
        if strategy in OTHER_ENGINES:
            message = f"{block}.strategy is {strategy}, but the configuration is that of FSDP: veRL fails at model load"
            fix = f"set model_engine to {strategy} under overrides, or {group}.strategy to fsdp2"
            yield error("FSDP-3", message, fix, [f"{block}.strategy", "model_engine"], {f"{group}.strategy": "fsdp2"})


RULES = (optimizer, learning_rate, betas, number_types, sharding, layers, engines)
