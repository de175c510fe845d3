"""Optimizers and learning rates: P22 and P25 of verl.md; the rest, a preset refuses itself."""

from __future__ import annotations

from launcher.preflight.config.base import (
    ACTOR,
    CRITIC,
    Findings,
    error,
    has_critic,
    warning,
)
from launcher.preflight.subject import Subject
from launcher.text import did_you_mean

TORCH = (
    "ASGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "LBFGS",
    "Muon",
    "NAdam",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SGD",
    "SparseAdam",
)
SCHEDULES = ("constant", "cosine")
STRATEGIES = ("fsdp", "fsdp2")


def _optims(subject: Subject) -> list[str]:
    return [f"{ACTOR}.optim", *([f"{CRITIC}.optim"] if has_critic(subject) else [])]


def optimizer(subject: Subject) -> Findings:
    """P22: the optimizer exists; others than torch's are looked for beside veRL."""
    for block in _optims(subject):
        name, module = subject.value(f"{block}.optimizer"), subject.value(f"{block}.optimizer_impl")
        if module == "torch.optim" and isinstance(name, str) and name not in TORCH:
            yield error(
                "P22",
                [f"{block}.optimizer"],
                f"torch.optim has no '{name}'{did_you_mean(name, TORCH)}: veRL dies of it at model load",
                f"set {block}.optimizer to AdamW",
            )
        elif isinstance(module, str) and module != "torch.optim" and not _installed(subject, module):
            package = module.partition(".")[0]
            yield error(
                "P22",
                [f"{block}.optimizer_impl"],
                f"the optimizer's package '{package}' is not installed beside veRL",
                f"{subject.python} -m pip install {package}, or set {block}.optimizer_impl to torch.optim",
            )


def _installed(subject: Subject, module: str) -> bool:
    """Whether the package lies beside veRL; True where that cannot be said."""
    if subject.verl is None or subject.machine.assumed or not (subject.verl.parent / "torch").is_dir():
        return True
    place = subject.verl.parent / module.partition(".")[0]
    return place.is_dir() or place.with_suffix(".py").is_file()


def learning_rate(subject: Subject) -> Findings:
    """P25: a learning rate of 0 learns nothing."""
    for block in _optims(subject):
        key = f"{block}.lr"
        if subject.value(key) == 0:
            usual = "1e-6" if block.startswith(ACTOR) else "1e-5"
            yield warning("P25", [key], f"{key} is 0: nothing is learned", f"set {key} to {usual}")


RULES = (optimizer, learning_rate)
