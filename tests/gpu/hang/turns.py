"""Runs that share a GPU train in turns: a run waits before its first step until no other of them is training.

So only their starts overlap. A run names this module in `env.VERL_USE_EXTERNAL_MODULES`; the variable `TURNS` has the
file of the lock, and without it nobody waits.
"""

import fcntl
import functools
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any


def _in_turns(module: ModuleType) -> None:
    own = module.PPOTrainer.fit

    @functools.wraps(own)
    def fit(self: Any, *args: Any, **kwargs: Any) -> Any:
        with Path(os.environ["TURNS"]).open("w") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            return own(self, *args, **kwargs)

    module.PPOTrainer.fit = fit


if __name__ == "turns" and "TURNS" in os.environ and "ppo_tui_inside.plugin" in sys.modules:
    from ppo_tui_inside.plugin.late import after_import

    after_import("verl.trainer.ppo.v1.trainer_base", _in_turns)
