"""A socket of its own for every run, so that runs side by side on one host do not take each other's weights.

veRL hands new weights to vLLM through a socket in /tmp whose name holds Ray's job id. A run starts a Ray of
its own, whose first job has the same id as every other's: two runs on one host, each on its own GPU, share
the name. The sender deletes the file before it binds, so nobody is told; a rollout engine then waits for
ever, or takes the weights of the other run.

The module with the two ends cannot be imported early (its package wants vLLM), so it is changed when veRL
imports it. In versions that have no such module nothing happens.
"""

import functools
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

MODULE = "verl.workers.rollout.vllm_rollout.bucketed_weight_transfer"
ENDS = ("BucketedWeightSender", "BucketedWeightReceiver")
RUN = "PPO_TUI_RUN"  # the supervisor sets it to the id of the run
_SHARED = "/rl-colocate-zmq-"


def install() -> None:
    """Waits for the import of the module; does nothing outside a run of ppo-tui."""
    if os.environ.get(RUN) and MODULE not in sys.modules:
        sys.meta_path.insert(0, _Watch())


def separate(module: ModuleType, run: str) -> None:
    """Makes both ends of the socket put the id of the run into its name."""
    for name in ENDS:
        end = getattr(module, name, None)
        if end is not None:
            end.__init__ = _renaming(end.__init__, run)


def _renaming(init: Any, run: str) -> Any:
    @functools.wraps(init)
    def with_own_socket(self: Any, zmq_handle: str, *args: Any, **kwargs: Any) -> None:
        init(self, zmq_handle.replace(_SHARED, f"{_SHARED}{run}-", 1), *args, **kwargs)

    return with_own_socket


class _Watch(importlib.abc.MetaPathFinder):
    """Steps in at the import of the one module, and is gone after it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Changed(spec.loader)
        return spec


class _Changed(importlib.abc.Loader):
    """The module's own loader, and then the change."""

    def __init__(self, loader: importlib.abc.Loader) -> None:
        self._loader = loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        separate(module, os.environ[RUN])
