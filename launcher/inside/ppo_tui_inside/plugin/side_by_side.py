"""Separate names and ports for runs that share a host or a Ray cluster.

veRL passes new weights to vLLM through a socket in /tmp named after Ray's job id. Each run starts its own Ray, whose
first job always has the same id, so two runs on one host share the name. The sender deletes the file before it binds,
so nothing reports this: a rollout engine waits forever, or takes the weights of the other run. The module of both ends
requires vLLM, so it is changed when veRL imports it.

TransferQueue (0.1.11, `interface.py: init`) looks for its controller by one name in one namespace of the cluster. A
second run would find that of the first, ignore its own settings and read the other's prompts. So the namespace gets a
suffix that all processes of a run can compute: a digest of the run's metrics path.

The ranks of a worker group meet at a port that veRL gets from the kernel and releases (`single_controller/ray/base.py:
get_master_addr_port`). They bind it half a minute later, after importing veRL. Meanwhile a connection of another run
may get it, and the start fails. So veRL searches from a random port on, below the kernel's ports for connections. On a
cluster of several nodes veRL's choice stays: a firewall may depend on it.
"""

import functools
import hashlib
import os
import secrets
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from .late import after_import

RUN = "PPO_TUI_RUN"  # the supervisor sets it to the id of the run
METRICS = "VERL_FILE_LOGGER_PATH"  # each attempt of a run has its own
_TRANSFER = "verl.workers.rollout.vllm_rollout.bucketed_weight_transfer"
_ENDS = ("BucketedWeightSender", "BucketedWeightReceiver")
_SOCKET, _NAMESPACE = "/rl-colocate-zmq-", "transfer_queue"  # shared by all runs
_GIVEN = Path("/proc/sys/net/ipv4/ip_local_port_range")  # the ports that Linux gives to connections
_PORTS, _LOOKED_AT = (20_000, 30_000), 200  # above the ports of Ray's workers; number of ports to try


def install() -> None:
    """Patches veRL; does nothing outside a run of ppo-tui, and without these modules."""
    if os.environ.get(RUN):
        after_import(_TRANSFER, separate_sockets)
        after_import("verl.single_controller.ray.base", separate_ports)
    if os.environ.get(METRICS):
        after_import("transfer_queue.interface", separate_queue)


def separate_sockets(module: ModuleType) -> None:
    """Makes both ends of the socket add the run's id to its name."""
    for name in _ENDS:
        end = getattr(module, name, None)
        if end is not None:
            end.__init__ = _renaming(end.__init__, os.environ[RUN])


def _renaming(init: Any, run: str) -> Any:
    @functools.wraps(init)
    def with_own_socket(self: Any, zmq_handle: str, *args: Any, **kwargs: Any) -> None:
        init(self, zmq_handle.replace(_SOCKET, f"{_SOCKET}{run}-", 1), *args, **kwargs)

    return with_own_socket


def separate_ports(module: ModuleType) -> None:
    """Makes a worker group look for its port outside of the range for connections."""
    group = getattr(module, "RayWorkerGroup", None)
    choose = getattr(group, "_get_master_addr_port", None)
    if choose is None:
        return

    @functools.wraps(choose)
    def with_own_port(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("master_port_range", ()) is None and len(module.ray.nodes()) == 1:
            kwargs["master_port_range"] = ports()
        return choose(*args, **kwargs)

    group._get_master_addr_port = with_own_port


def ports() -> list[int] | None:
    """The first port to try and the end; None if the kernel uses nearly all ports for connections."""
    with suppress(OSError, ValueError, IndexError):
        first, end = _PORTS[0], min(_PORTS[1], int(_GIVEN.read_text().split()[0]))
        if end - first > _LOOKED_AT:
            start = first + secrets.randbelow(end - first - _LOOKED_AT)
            return [start, start + _LOOKED_AT]
    return None


def separate_queue(module: ModuleType) -> None:
    """Makes the module register and find its controller in the run's own namespace."""
    digest = hashlib.sha256(os.environ[METRICS].encode()).hexdigest()[:12]
    for name in ("ray", "TransferQueueController"):
        if hasattr(module, name):
            setattr(module, name, _Renaming(getattr(module, name), f"{_NAMESPACE}-{digest}"))


class _Renaming:
    """A proxy for Ray, or for an actor's class, that replaces the shared namespace by the run's own."""

    def __init__(self, of: Any, namespace: str) -> None:
        self._of, self._namespace = of, namespace

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._of, name)
        if name not in ("get_actor", "options"):
            return found

        def renamed(*args: Any, **kwargs: Any) -> Any:
            if kwargs.get("namespace") == _NAMESPACE:
                kwargs["namespace"] = self._namespace
            return found(*args, **kwargs)

        return renamed
