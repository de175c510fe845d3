"""A TransferQueue of its own for every run, so that runs side by side on one Ray cluster do not share one.

TransferQueue (0.1.11, `interface.py: init`) looks for its controller by one name in one namespace of the cluster. A
second run would find that of the first, ignore its own settings and read the other's prompts. The namespace gets a
suffix here that all processes of a run know: a digest of where the run writes its metrics.
"""

import hashlib
import os
from types import ModuleType
from typing import Any

from .late import after_import

MODULE = "transfer_queue.interface"
RUN = "VERL_FILE_LOGGER_PATH"  # each attempt of a run has its own
_SHARED = "transfer_queue"


def install() -> None:
    """Does nothing where the run is not known."""
    if os.environ.get(RUN):
        after_import(MODULE, separate)


def separate(module: ModuleType) -> None:
    """Makes the module look for its controller, and name it, in the run's own namespace."""
    digest = hashlib.sha256(os.environ[RUN].encode()).hexdigest()[:12]
    for name in ("ray", "TransferQueueController"):
        if hasattr(module, name):
            setattr(module, name, _Renaming(getattr(module, name), f"{_SHARED}-{digest}"))


class _Renaming:
    """Ray, or the class of an actor, whose calls with the shared namespace have the run's own."""

    def __init__(self, of: Any, namespace: str) -> None:
        self._of, self._namespace = of, namespace

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._of, name)
        if name not in ("get_actor", "options"):
            return found

        def renamed(*args: Any, **kwargs: Any) -> Any:
            if kwargs.get("namespace") == _SHARED:
                kwargs["namespace"] = self._namespace
            return found(*args, **kwargs)

        return renamed
