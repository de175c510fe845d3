"""A socket of its own for every run, so that runs side by side on one host do not take each other's weights.

veRL hands new weights to vLLM through a socket in /tmp whose name holds Ray's job id. A run starts a Ray of
its own, whose first job has the same id as every other's: two runs on one host, each on its own GPU, share
the name. The sender deletes the file before it binds, so nothing is reported; a rollout engine then waits for
ever, or takes the weights of the other run.

The package of the module with the two ends requires vLLM, so it is changed when veRL imports it.
"""

import functools
import os
from types import ModuleType
from typing import Any

from .late import after_import

MODULE = "verl.workers.rollout.vllm_rollout.bucketed_weight_transfer"
ENDS = ("BucketedWeightSender", "BucketedWeightReceiver")
RUN = "PPO_TUI_RUN"  # the supervisor sets it to the id of the run
_SHARED = "/rl-colocate-zmq-"


def install() -> None:
    """Does nothing outside a run of ppo-tui, and in versions of veRL without this module."""
    if os.environ.get(RUN):
        after_import(MODULE, separate)


def separate(module: ModuleType) -> None:
    """Makes both ends of the socket put the id of the run into its name."""
    for name in ENDS:
        end = getattr(module, name, None)
        if end is not None:
            end.__init__ = _renaming(end.__init__, os.environ[RUN])


def _renaming(init: Any, run: str) -> Any:
    @functools.wraps(init)
    def with_own_socket(self: Any, zmq_handle: str, *args: Any, **kwargs: Any) -> None:
        init(self, zmq_handle.replace(_SHARED, f"{_SHARED}{run}-", 1), *args, **kwargs)

    return with_own_socket
