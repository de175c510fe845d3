"""A run that continues from a checkpoint takes the optimizer's settings from its own configuration.

An FSDP checkpoint of veRL (0.4.1 to 0.9.1) has the optimizer's parameter groups, with learning rate, weight decay and
betas, and the scheduler's base rates. Loading it puts them over those of the configuration: a run resumed with another
`optim.lr` went on with the old one, and nothing said so. With unchanged settings, what is set here equals what was
loaded. Megatron's own loader lets the configuration win already.

veRL: `utils/checkpoint/fsdp_checkpoint_manager.py: FSDPCheckpointManager.load_checkpoint`.
"""

import functools
from types import ModuleType
from typing import Any

from .late import after_import

MANAGER = "verl.utils.checkpoint.fsdp_checkpoint_manager"
RATES = ("lr", "initial_lr")  # of a parameter group; the scheduler sets them by the step


def install() -> None:
    """Does nothing where veRL has no FSDP checkpoints."""
    after_import(MANAGER, keep_settings)


def keep_settings(module: ModuleType) -> None:
    """Puts the configuration's settings back after a checkpoint was loaded."""
    manager = module.FSDPCheckpointManager
    load = manager.load_checkpoint

    @functools.wraps(load)
    def load_state_alone(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = configured(self.optimizer, self.lr_scheduler)
        found = load(self, *args, **kwargs)
        put_back(self.optimizer, self.lr_scheduler, before)
        return found

    manager.load_checkpoint = load_state_alone


def configured(optimizer: Any, scheduler: Any) -> tuple[list[dict[str, Any]], list[float]]:
    """The settings of each parameter group but its parameters and rate, and the base rates."""
    groups = getattr(optimizer, "param_groups", [])
    kept = [{key: value for key, value in group.items() if key not in ("params", *RATES)} for group in groups]
    return kept, list(getattr(scheduler, "base_lrs", []))


def put_back(optimizer: Any, scheduler: Any, before: tuple[list[dict[str, Any]], list[float]]) -> None:
    """Sets them again, with the rate that the schedule has at the step of the checkpoint.

    A scheduler without a function of the step (none of veRL's) keeps what was loaded.
    """
    settings, rates = before
    groups = getattr(optimizer, "param_groups", [])
    schedule = getattr(scheduler, "lr_lambdas", [])
    for group, kept in zip(groups, settings, strict=False):
        group.update(kept)
    if not len(groups) == len(rates) == len(schedule):
        return
    scheduler.base_lrs = rates
    for group, rate, share in zip(groups, rates, schedule, strict=True):
        group["initial_lr"] = rate
        group["lr"] = rate * share(scheduler.last_epoch)
    scheduler._last_lr = [group["lr"] for group in groups]
