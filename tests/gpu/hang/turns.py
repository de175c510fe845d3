"""Runs that share a GPU train in turns: a run waits before each step but its first until no other one is in a step.

So only starts and first steps overlap. A run names this module in `env.VERL_USE_EXTERNAL_MODULES`; the variable `TURNS`
has the file of the lock, and without it nobody waits.
"""

import fcntl
import functools
import os
import sys
from types import ModuleType
from typing import Any


def _in_turns(module: ModuleType) -> None:
    trainer, steps = module.PPOTrainer, module.SkipManager
    fit, metrics, begin = trainer.fit, trainer._compute_metrics, steps.set_step
    turn, last = os.open(os.environ["TURNS"], os.O_CREAT | os.O_WRONLY), 0

    @functools.wraps(fit)
    def fit_in_turns(self: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal last
        last = self.total_training_steps
        return fit(self, *args, **kwargs)

    def set_step(step: int) -> None:
        """Called before each step, outside its time."""
        begin(step)
        if 1 < step <= last:
            fcntl.flock(turn, fcntl.LOCK_EX)

    @functools.wraps(metrics)
    def metrics_in_turns(self: Any, *args: Any, **kwargs: Any) -> Any:
        """Called after each step."""
        fcntl.flock(turn, fcntl.LOCK_UN)
        return metrics(self, *args, **kwargs)

    trainer.fit, trainer._compute_metrics, steps.set_step = fit_in_turns, metrics_in_turns, staticmethod(set_step)


if __name__ == "turns" and "TURNS" in os.environ and "ppo_tui_inside.plugin" in sys.modules:
    from ppo_tui_inside.plugin.late import after_import

    after_import("verl.trainer.ppo.v1.trainer_base", _in_turns)
