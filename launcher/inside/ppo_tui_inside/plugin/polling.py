"""Detects finished rollouts sooner.

veRL's v1 trainer polls TransferQueue every 2 s for all rollouts of a step (0.9.0 to 0.9.1,
`trainer/ppo/v1/replay_buffer.py: ReplayBuffer`, the parameter `poll_interval`), so the time of each rollout is a
multiple of 2.01 s, and a step waits 1 s too long on average. No veRL key sets the interval. This lowers its default; a
user's sampler that passes or sets its own interval keeps it.
"""

import math
import os
from types import FunctionType, ModuleType

from .late import after_import
from .side_by_side import RUN

SWITCH = "PPO_TUI_POLL_INTERVAL"  # seconds; 0 leaves veRL's own
_NAME = "poll_interval"
SECONDS = 0.2  # an answer about a large batch takes TransferQueue some milliseconds


def install() -> None:
    """Patches veRL; does nothing outside a run of ppo-tui, and without this module or parameter."""
    if os.environ.get(RUN):
        after_import("verl.trainer.ppo.v1.replay_buffer", look_sooner)


def look_sooner(module: ModuleType) -> None:
    """Lowers the default of `poll_interval`, which subclasses inherit."""
    init, seconds = (
        getattr(getattr(module, "ReplayBuffer", None), "__init__", None),
        interval(os.environ.get(SWITCH, "")),
    )
    if not isinstance(init, FunctionType) or seconds is None:
        return
    code, own = init.__code__, init.__defaults__ or ()
    named = code.co_varnames[code.co_argcount - len(own) : code.co_argcount]
    init.__defaults__ = tuple(
        min(seconds, value) if name == _NAME else value for name, value in zip(named, own, strict=True)
    )


def interval(text: str) -> float | None:
    """Seconds between two polls; None to keep veRL's interval."""
    try:
        seconds = float(text) if text.strip() else SECONDS
    except ValueError:
        seconds = SECONDS
    return seconds if 0 < seconds < math.inf else None
