"""Checkpoints: a run saves one on request, and continues from one with its own settings.

The supervisor requests a checkpoint with the file `save-now` next to the metrics of the attempt, as veRL accepts no
requests from outside. veRL's v1 loop (`trainer/ppo/v1/trainer_base.py: PPOTrainer.fit`) saves every `save_freq` steps
and at the end, just after `_stop_profiling`. The other one, since 0.5 (`trainer/ppo/ray_trainer.py`), also saves when
its machine is about to expire (`should_save_ckpt_esi`), if `save_freq` is above 0. veRL 0.4 has neither.

An FSDP checkpoint of veRL (0.4.1 to 0.9.1) has the optimizer's parameter groups, with learning rate, weight decay and
betas, and the scheduler's base rates. Loading it (`utils/checkpoint/fsdp_checkpoint_manager.py:
FSDPCheckpointManager.load_checkpoint`) overwrites those of the configuration: without a message, a run resumed with
another `optim.lr` continued with the old one. With unchanged settings, the values set here equal the loaded ones.
Megatron's own loader already prefers the configuration.
"""

import functools
import os
from pathlib import Path
from types import ModuleType
from typing import Any

from .late import after_import

REQUEST = "save-now"
RATES = ("lr", "initial_lr")  # rates in a parameter group; the scheduler sets them by step


def install() -> None:
    """Patches veRL; does nothing without these modules."""
    after_import("verl.trainer.ppo.ray_trainer", save_like_before_expiry)
    after_import("verl.trainer.ppo.v1.trainer_base", save_after_step)
    after_import("verl.utils.checkpoint.fsdp_checkpoint_manager", keep_settings)


def asked() -> bool:
    """Whether a checkpoint was requested; removes the request."""
    metrics = os.environ.get("VERL_FILE_LOGGER_PATH")
    if not metrics:
        return False
    try:
        (Path(metrics).parent / REQUEST).unlink()
    except OSError:
        return False
    return True


def save_like_before_expiry(module: ModuleType) -> None:
    """Handles a request as if the machine were about to expire."""
    expires = getattr(module, "should_save_ckpt_esi", None)
    if expires is not None:
        module.should_save_ckpt_esi = lambda *args, **kwargs: asked() or expires(*args, **kwargs)  # type: ignore[attr-defined]


def save_after_step(module: ModuleType) -> None:
    """Saves on request, unless veRL is about to save."""
    trainer = module.PPOTrainer
    stop = getattr(trainer, "_stop_profiling", None)
    if stop is None:
        return

    @functools.wraps(stop)
    def stop_and_save(self: Any) -> None:
        stop(self)
        every = self.config.trainer.save_freq
        if asked() and not (every > 0 and self.global_steps % every == 0):
            self._save_checkpoint()

    trainer._stop_profiling = stop_and_save


def keep_settings(module: ModuleType) -> None:
    """Restores the configuration's settings after loading a checkpoint."""
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
    """The settings of each parameter group except its parameters and rate, and the base rates."""
    groups = getattr(optimizer, "param_groups", [])
    kept = [{key: value for key, value in group.items() if key not in ("params", *RATES)} for group in groups]
    return kept, list(getattr(scheduler, "base_lrs", []))


def put_back(optimizer: Any, scheduler: Any, before: tuple[list[dict[str, Any]], list[float]]) -> None:
    """Restores the settings, with the schedule's rate at the checkpoint's step.

    A scheduler without a function of the step (none of veRL's) keeps the loaded values.
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
