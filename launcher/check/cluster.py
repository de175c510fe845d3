"""The present state of the Ray cluster that a run joins or is submitted to: CLUSTER-2 to CLUSTER-6."""

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from launcher.check import data, fitting
from launcher.check.cluster_view import PATIENCE, Node, NotJoined, View, ask, shown
from launcher.check.config.base import gpu_count
from launcher.check.config.resources import UNITS, addresses, cpus_a_gpu
from launcher.check.finding import Change, Finding, of_data, of_hardware, of_software
from launcher.check.row_rules import REWARD
from launcher.check.subject import Subject
from launcher.core import paths
from launcher.core.errors import UserError
from launcher.core.format import counted
from launcher.inside.ppo_tui_inside import SUPPORTED
from launcher.machine.capacity import Gpu, Machine
from launcher.machine.ray_jobs import Trouble
from launcher.record.machine import MachineSample
from launcher.verl import env as verl_env
from launcher.verl.config import CRITIC_PATH, GPUS, MODEL_PATH, NODES

_KEYS = ("cluster.address",)
_QUEUE = "TransferQueueController"  # transfer_queue/interface.py: one name for the whole cluster
_INTERPRETER = "set cluster.py_executable to a Python that every node has"
_MOST = 3  # nodes or paths that one message names


def checks(subject: Subject) -> Iterator[Finding]:
    """Checks that the cluster answers, has room, and has on each node what the run needs."""
    if not subject.joins_cluster or subject.machine.assumed or any(addresses(subject)):
        return
    try:
        with shown(paths.runs_dir()) as mark:
            view = ask(subject, [*_needed(subject), mark])
    except UserError as error:
        yield of_hardware.error("CLUSTER-2", error.message, error.hint or _way_in(subject, error), _KEYS)
        return
    yield of_hardware.info("CLUSTER-2", f"{view.where} answers: {_words(view)}", "nothing to do", _KEYS)
    holders, queue, gpus = _asked(view)
    yield from room(subject, view.nodes, holders)
    if subject.loaded.preset.cluster.submit and gpus:
        there = Machine(gpus, 0, 0, 0, assumed=True, nodes=len(view.nodes))
        yield from fitting.checks(replace(subject, machine=there))
    if queue and subject.is_v1 and subject.version != SUPPORTED:  # otherwise the run has a queue of its own
        message = "another veRL run is on this cluster, and both would use its TransferQueue: one of them fails"
        fix = (
            f"wait until it ends, use another cluster, or veRL {SUPPORTED} (ppo-tui then gives each run its own queue)"
        )
        yield of_software.error("CLUSTER-4", message, fix, _KEYS)
    yield from software(subject, view)
    yield from files(subject, view.nodes, mark)


def room(subject: Subject, nodes: Iterable[Node], holders: Mapping[str, float]) -> Iterator[Finding]:
    """CLUSTER-3: the GPUs are free, as many on one node as veRL asks of it, with their CPUs.

    veRL: `verl/single_controller/ray/base.py: ResourcePoolManager._check_resource_available` fails at once,
    `RayResourcePool.get_placement_groups` waits forever. Its groups are STRICT_PACK; two of them may share a node.
    """
    nodes = tuple(nodes)
    each, units = cpus_a_gpu(subject), (subject.whole(UNITS) or 0) if subject.is_v1 else 0
    gpus, machines, own = subject.whole(GPUS) or 1, subject.whole(NODES) or 1, subject.engine_gpus
    there, free = (sum(_of(node, "GPU", free=free) for node in nodes) for free in (False, True))
    wanted, cpus = subject.gpus + own, each * subject.gpus + 2 * own + 1 + units
    possible = functools.partial(_possible, nodes, each)
    taken = ", ".join(f"{number:g} by {name}" for name, number in sorted(holders.items(), key=lambda each: -each[1]))
    if wanted > free:
        message = f"the run requires {gpu_count(wanted)}, and the cluster has {int(there) or 'none'}"
        if wanted <= there:
            message = f"the run requires {gpu_count(wanted)}, and {free:g} of {gpu_count(int(there))} are free"
            message += f" (taken: {taken})" * bool(taken)
    elif possible(gpus) < machines:
        message = (
            f"veRL requires {machines} x ({gpu_count(gpus)} + {each * gpus} CPUs), each free on one node, and the "
            f"cluster has {possible(gpus) or 'none'} of that: veRL would wait forever"
        )
    elif cpus > (spare := sum(_of(node, "CPU") for node in nodes)):
        message = f"the run requires {cpus} CPUs on the cluster, and {spare:g} are free: veRL would wait forever"
        yield of_hardware.error("CLUSTER-3", message, "wait until they are free, or add a node", (UNITS, GPUS))
        return
    else:
        return
    change = _layout(wanted - own, possible)
    waits = "wait until they are free" if wanted <= there else "add nodes"
    fix = f"set {' and '.join(f'{name} to {value}' for name, value in change.items())}, or {waits}" if change else waits
    yield of_hardware.error("CLUSTER-3", message, fix, (GPUS, NODES), change)


def software(subject: Subject, view: View) -> Iterator[Finding]:
    """CLUSTER-5: every node runs the workers with the same veRL, and with what ppo-tui loads into it."""
    answered = [node for node in view.nodes if node.python is not None]
    for node in view.nodes:
        if node.python is None:
            message = f"node {node.ip} did not start a worker ({node.error or f'no answer in {PATIENCE} s'})"
            fix = f"look at this node with `ray status`, or {_INTERPRETER}"
            yield of_software.error("CLUSTER-5", message, fix, _KEYS)
    here = dict(verl_env.probe(subject.python).packages)
    for name in ("verl", "torch", "transformers"):
        if name not in here:
            continue
        without = [node for node in answered if name not in node.packages]
        other = [node for node in answered if node.packages.get(name, here[name]) != here[name]]
        if without:
            message = f"{name} is missing for {without[0].python} on {_nodes(without)}"
            fix = f"install {name} {here[name]} there, or {_INTERPRETER}"
            yield of_software.error("CLUSTER-5", message, fix, ("cluster.py_executable",))
        if other:
            message = f"{name} is {other[0].packages[name]} on {_nodes(other)}, and {here[name]} for {subject.python}"
            fix = f"install {name} {here[name]} there, or {_INTERPRETER}"
            kind = of_software.error if name == "verl" else of_software.warning
            yield kind("CLUSTER-5", message, fix, ("cluster.py_executable",))
    if without := [node for node in answered if node.missing and "verl" in node.packages]:
        message = f"ppo-tui's plugin for veRL cannot be imported on {_nodes(without)}: the run would fail"
        fix = "install ppo-tui there, or set cluster.submit to true, which uploads it"
        yield of_software.error("CLUSTER-5", message, fix, ("cluster.submit",))


def files(subject: Subject, nodes: Iterable[Node], mark: str) -> Iterator[Finding]:
    """CLUSTER-6: data, models and reward function are on every node, and the folder of the runs is shared."""
    answered = [node for node in nodes if node.python is not None]
    for path, (key, what) in _needed(subject).items():
        without = [node for node in answered if path not in node.sizes]
        if without:
            message = f"{what} is not on {_nodes(without)}: {path}"
            fix = f"copy it there under this path, or set {key} to a folder that all nodes share"
            yield of_data.error("CLUSTER-6", message, fix, (key,))
        elif len(sizes := {node.sizes[path] for node in answered}) > 1:
            message = f"{what} differs between the nodes ({_bytes(sizes)}): {path}"
            yield of_data.error("CLUSTER-6", message, "copy the same file to all nodes", (key,))
    if without := [node for node in answered if mark not in node.sizes]:
        folder = Path(mark).parent
        lacks = "each node keeps its part of a checkpoint: no run can resume from it" if len(answered) > 1 else ""
        if subject.loaded.preset.cluster.submit:
            lacks = "samples, checkpoints and metrics in full precision stay there"
        message = f"{folder} is not shared with {_nodes(without)}: {lacks}"
        if lacks:
            fix = "set PPO_TUI_HOME to a folder that all nodes share"
            yield of_data.warning("CLUSTER-6", message, fix, ("trainer.default_local_dir",))


def _needed(subject: Subject) -> dict[str, tuple[str, str]]:
    """Absolute paths that the workers read and that exist here, each with its key and its kind."""
    found: dict[str, tuple[str, str]] = {}
    for key in data.FILES.values():
        found |= dict.fromkeys(data.files(subject, key), (key, "a data file"))
    named = [(MODEL_PATH, "the model"), (REWARD, "the reward function")]
    named += [(CRITIC_PATH, "the critic")] if subject.has_critic else []
    for key, what in named:
        found.setdefault(str(subject.get(key) or ""), (key, what))
    return {path: about for path, about in found.items() if path.startswith("/") and Path(path).exists()}


def _asked(view: View) -> tuple[Mapping[str, float], list[str], tuple[Gpu, ...]]:
    """Holders of GPUs, the controllers of other runs' queues, the GPUs; unknown without a dashboard."""
    with contextlib.suppress(UserError):
        if view.rest is not None:
            seen = MachineSample.of_cluster(0, view.rest.nodes()).gpus
            gpus = tuple(Gpu(gpu.name, gpu.total, gpu.used or 0) for gpu in seen if gpu.total)
            return view.rest.holders(), view.rest.actors(_QUEUE), gpus
    return {}, [], ()


def _possible(nodes: Iterable[Node], each: int, gpus: int) -> int:
    """How many groups of so many GPUs with their CPUs are free, each on one node."""
    return sum(int(min(_of(node, "GPU") // gpus, _of(node, "CPU") // (each * gpus))) for node in nodes)


def _layout(wanted: int, possible: Callable[[int], int]) -> Change | None:
    """Nodes and GPUs per node that give the run as many free GPUs as possible, at most those that it wanted."""
    best = (0, 0, 0)
    for gpus in range(1, wanted + 1):
        nodes = min(possible(gpus), wanted // gpus)
        best = max(best, (gpus * nodes, gpus, nodes))
    return {"trainer.nodes": best[2], "trainer.gpus": best[1]} if best[0] else None


def _words(view: View) -> str:
    """`Ray 2.60.0, Python 3.11.9; 2 nodes, 6 of 8 GPUs and 40 of 64 CPUs free`."""
    said = [f"{view.sum(name, free=True):g} of {view.sum(name, free=False):g} {name}s" for name in ("GPU", "CPU")]
    count = len(view.nodes)
    machines = f"{counted(count, 'node')}"
    return f"Ray {view.ray}, Python {view.python}; {machines}, {said[0]} and {said[1]} free"


def _way_in(subject: Subject, error: UserError) -> str:
    trouble = error.trouble if isinstance(error, NotJoined) else None
    if trouble is Trouble.TOKEN:
        return "set RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH to the token of the cluster, or write it to ~/.ray/auth_token"
    if trouble is Trouble.VERSION:
        return "set 'python' of the preset to an interpreter with the Ray and Python of the cluster"
    if subject.loaded.preset.cluster.submit:
        return "start the cluster, or set cluster.address to its dashboard, host:8265"
    return "start the cluster with `ray start --head`, or set cluster.address to host:6379 of its head"


def _of(node: Node, name: str, *, free: bool = True) -> float:
    return (node.free if free else node.total).get(name, 0.0)


def _nodes(nodes: list[Node]) -> str:
    names = ", ".join(node.ip for node in nodes[:_MOST])
    more = f" and {len(nodes) - _MOST} more" if len(nodes) > _MOST else ""
    return f"node{'s' * (len(nodes) > 1)} {names}{more}"


def _bytes(sizes: Iterable[float]) -> str:
    return ", ".join("a folder" if size < 0 else f"{size:,.0f} bytes" for size in sorted(sizes))
