"""The current state of the Ray cluster that a run joins or is submitted to: CLUSTER-2 to CLUSTER-6."""

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from launcher.check import data, fitting
from launcher.check.cluster_view import PATIENCE, Node, NotJoined, View, ask, shown
from launcher.check.config.base import gpu_count
from launcher.check.config.resources import UNITS, addresses, cpus_a_gpu
from launcher.check.finding import Finding, Level, Settings, Words, found, setting
from launcher.check.row_rules import REWARD
from launcher.check.subject import Subject
from launcher.core import paths
from launcher.core.errors import UserError
from launcher.core.format import counted
from launcher.inside.ppo_tui_inside import SUPPORTED
from launcher.machine.capacity import Gpu, Machine
from launcher.machine.ray_jobs import Trouble
from launcher.record.fix import Fix
from launcher.record.machine import MachineSample
from launcher.verl import env as verl_env
from launcher.verl.config import CRITIC_PATH, GPUS, MODEL_PATH, NODES

_KEYS = ("cluster.address",)
_QUEUE = "TransferQueueController"  # transfer_queue/interface.py: one name for the whole cluster
_MOST = 3  # nodes or paths that one message names


def checks(subject: Subject) -> Iterator[Finding]:
    """Checks that the cluster answers, has room, and meets the run's requirements on each node."""
    if not subject.joins_cluster or subject.machine.assumed or any(addresses(subject)):
        return
    try:
        with shown(paths.runs_dir()) as mark:
            view = ask(subject, [*_needed(subject), mark])
    except UserError as error:
        yield found("CLUSTER-2.error", message=error.message, fix=error.hint or _way_in(subject, error), keys=_KEYS)
        return
    yield found("CLUSTER-2.answer", where=view.where, view=_words(view), keys=_KEYS)
    holders, queue, gpus = _asked(view)
    yield from room(subject, view.nodes, holders)
    if subject.loaded.preset.cluster.submit and gpus:
        there = Machine(gpus, 0, 0, 0, assumed=True, nodes=len(view.nodes))
        yield from fitting.checks(replace(subject, machine=there))
    if queue and subject.is_v1 and subject.version != SUPPORTED:  # otherwise the run has a queue of its own
        yield found("CLUSTER-4", keys=_KEYS)
    yield from software(subject, view)
    yield from files(subject, view.nodes, mark)


def room(subject: Subject, nodes: Iterable[Node], holders: Mapping[str, float]) -> Iterator[Finding]:
    """CLUSTER-3: enough GPUs are free on one node for each group that veRL requests, with their CPUs.

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
        have = f"the cluster has {int(there) or 'none'}"
        if wanted <= there:
            have = f"{free:g} of {gpu_count(int(there))} are free" + f" (taken: {taken})" * bool(taken)
        name = "CLUSTER-3.gpus"
        words: Words = {"wanted": wanted, "have": have}
    elif possible(gpus) < machines:
        words = {"machines": machines, "gpus": gpus, "cpus": each * gpus, "have": possible(gpus) or "none"}
        name = "CLUSTER-3.nodes"
    elif cpus > (spare := sum(_of(node, "CPU") for node in nodes)):
        yield found("CLUSTER-3.cpus", cpus=cpus, spare=spare)
        return
    else:
        return
    change = _layout(wanted - own, possible)
    waits = Fix("wait until they are free" if wanted <= there else "add nodes", alternative=bool(change))
    yield found(name, **words, fixes=[setting(change), waits] if change else [waits])


def software(subject: Subject, view: View) -> Iterator[Finding]:
    """CLUSTER-5: all nodes run the workers with one version of veRL, and with ppo-tui's plugin."""
    answered = [node for node in view.nodes if node.python is not None]
    for node in view.nodes:
        if node.python is None:
            yield found("CLUSTER-5.node", ip=node.ip, why=node.error or f"no answer in {PATIENCE} s", keys=_KEYS)
    here = dict(verl_env.probe(subject.python).packages)
    for name in ("verl", "torch", "transformers"):
        if name not in here:
            continue
        without = [node for node in answered if name not in node.packages]
        other = [node for node in answered if node.packages.get(name, here[name]) != here[name]]
        if without:
            yield found(
                "CLUSTER-5.missing", name=name, python=without[0].python, without=_nodes(without), here=here[name]
            )
        if other:
            words: Words = {"name": name, "there": other[0].packages[name], "nodes": _nodes(other), "here": here[name]}
            level: Level = "error" if name == "verl" else "warning"
            yield found("CLUSTER-5.version", **words, python=subject.python, level=level)
    if without := [node for node in answered if node.missing and "verl" in node.packages]:
        yield found("CLUSTER-5.plugin", without=_nodes(without))


def files(subject: Subject, nodes: Iterable[Node], mark: str) -> Iterator[Finding]:
    """CLUSTER-6: data, models and reward function are on every node, which shares the folder of runs."""
    answered = [node for node in nodes if node.python is not None]
    for path, (key, what) in _needed(subject).items():
        without = [node for node in answered if path not in node.sizes]
        if without:
            yield found("CLUSTER-6.missing", what=what, without=_nodes(without), path=path, key=key)
        elif len(sizes := {node.sizes[path] for node in answered}) > 1:
            told = ", ".join("a folder" if size < 0 else f"{size:,.0f} bytes" for size in sorted(sizes))
            yield found("CLUSTER-6.different", what=what, sizes=told, path=path, key=key)
    if without := [node for node in answered if mark not in node.sizes]:
        folder = Path(mark).parent
        lacks = "each node keeps its part of a checkpoint: no run can resume from it" if len(answered) > 1 else ""
        if subject.loaded.preset.cluster.submit:
            lacks = "samples, checkpoints and full-precision metrics stay there"
        if lacks:
            yield found("CLUSTER-6.runs", folder=folder, without=_nodes(without), lacks=lacks)


def _needed(subject: Subject) -> dict[str, tuple[str, str]]:
    """Absolute local paths that the workers read, each with its key and kind."""
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
    """The number of free groups of `gpus` GPUs on one node, with `each` CPUs per GPU."""
    return sum(int(min(_of(node, "GPU") // gpus, _of(node, "CPU") // (each * gpus))) for node in nodes)


def _layout(wanted: int, possible: Callable[[int], int]) -> Settings | None:
    """Nodes and GPUs per node with the most free GPUs for the run, at most the requested ones."""
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
        return "set 'python' in the preset to an interpreter with the cluster's Python and Ray versions"
    if subject.loaded.preset.cluster.submit:
        return "start the cluster, or set cluster.address to its dashboard, host:8265"
    return "start the cluster with `ray start --head`, or set cluster.address to host:6379 of its head"


def _of(node: Node, name: str, *, free: bool = True) -> float:
    return (node.free if free else node.total).get(name, 0.0)


def _nodes(nodes: list[Node]) -> str:
    names = ", ".join(node.ip for node in nodes[:_MOST])
    more = f" and {len(nodes) - _MOST} more" if len(nodes) > _MOST else ""
    return f"node{'s' * (len(nodes) > 1)} {names}{more}"
