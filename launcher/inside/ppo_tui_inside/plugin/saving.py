"""veRL saves a checkpoint when the supervisor asks for one, after the step that it is in.

It asks with the file `save-now` beside the metrics of the attempt: veRL has no way to ask from outside. The trainer of
veRL 0.9 (`trainer/ppo/v1/trainer_base.py: PPOTrainer.fit`) saves every `save_freq` steps and at the end, just after
`_stop_profiling`. That of 0.5 and later (`trainer/ppo/ray_trainer.py`) also saves when its machine is about to be
taken away (`should_save_ckpt_esi`), as long as `save_freq` is above 0. veRL 0.4 has neither.
"""

import functools
import os
from pathlib import Path
from types import ModuleType
from typing import Any

from .late import after_import

REQUEST = "save-now"


def install() -> None:
    """Does nothing where veRL has neither trainer."""
    after_import("verl.trainer.ppo.ray_trainer", save_like_before_expiry)
    after_import("verl.trainer.ppo.v1.trainer_base", save_after_step)


def asked() -> bool:
    """Whether a checkpoint was asked for; the request is taken."""
    metrics = os.environ.get("VERL_FILE_LOGGER_PATH")
    if not metrics:
        return False
    try:
        (Path(metrics).parent / REQUEST).unlink()
    except OSError:
        return False
    return True


def save_like_before_expiry(module: ModuleType) -> None:
    """A request counts as a machine that is about to be taken away."""
    expires = getattr(module, "should_save_ckpt_esi", None)
    if expires is not None:
        module.should_save_ckpt_esi = lambda *args, **kwargs: asked() or expires(*args, **kwargs)  # type: ignore[attr-defined]


def save_after_step(module: ModuleType) -> None:
    """Saves on request, unless veRL is about to."""
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
