"""What the run requires of the machine: P1 to P3.

veRL: `verl/single_controller/ray/base.py: ResourcePoolManager._check_resource_available` and `RayResourcePool`,
`verl/workers/engine_workers.py: ActorRolloutRefWorker.init_model`.
"""

from launcher.check.config.base import Findings, dividing, error, gpu_count, machines, one_of
from launcher.check.finding import of_hardware
from launcher.check.subject import Subject
from launcher.core.errors import UserError
from launcher.core.format import counted
from launcher.machine import ray_jobs as jobs
from launcher.verl.config import ENGINE_GPUS, GPUS, NODES, TENSOR

UNITS = "transfer_queue.backend.SimpleStorage.num_data_storage_units"
RAY_CPUS = "ray_kwargs.ray_init.num_cpus"


def gpus(subject: Subject) -> Findings:
    """P1: the GPUs exist; a run over several machines joins a Ray cluster."""
    if subject.machine.nodes is not None:
        yield from _over_nodes(subject, subject.machine.nodes)
        return
    if subject.joins_cluster:
        return
    own = subject.engine_gpus
    wanted, nodes = subject.gpus + own, subject.whole(NODES) or 1
    if nodes > 1 and not subject.machine.assumed:
        message = f"the run requires {machines(nodes)}, but Ray is started only on this one: veRL fails"
        fix = "set trainer.nodes to 1, or set cluster.address to a Ray cluster"
        yield of_hardware.error("P1", message, fix, (NODES, "ray_kwargs.ray_init.address"), {"trainer.nodes": 1})
        return
    there = len(subject.machine.gpus)
    if subject.on_cpu or wanted <= there:
        return
    found = gpu_count(there) if there else "no GPU"
    where = "the assumed machine has" if subject.machine.assumed else "this machine has"
    fix, change = "run it on a machine with a GPU; the preset toy-cpu needs none", {}
    if own and there > own:
        change = {"trainer.gpus": there - own}
        fix = f"set trainer.gpus to {there - own}, with {gpu_count(own)} for the engine alone; or trainer.mode to sync"
    elif own and there:
        fix = "set trainer.mode to sync or colocate_async, which share the GPUs"
    elif there:
        each = there // nodes or there
        change = {"trainer.gpus": each} if there >= nodes else {"trainer.nodes": 1, "trainer.gpus": each}
        fix = " and ".join(f"set {field} to {value}" for field, value in change.items())
    engine = f" ({subject.gpus} to train, {own} for the engine alone)" if own else ""
    message = f"the run requires {gpu_count(wanted)}{engine}, and {where} {found}"
    yield of_hardware.error("P1", message, fix, (GPUS, NODES), change or None)


def _over_nodes(subject: Subject, there: int) -> Findings:
    """P1 for a described cluster: machines with as many GPUs as veRL asks of one.

    veRL: `RayResourcePool.get_placement_groups`: a STRICT_PACK group for each; two of them may share a machine.
    """
    gpus, nodes, own = subject.whole(GPUS) or 1, subject.whole(NODES) or 1, subject.engine_gpus
    each = len(subject.machine.gpus) // there
    if there * (each // gpus) < nodes or subject.gpus + own > there * each:
        change = {"trainer.nodes": there, "trainer.gpus": each} if not own else None
        extra = f" and {gpu_count(own)} for the engine alone" if own else ""
        message = (
            f"the run requires {machines(nodes)} with {gpu_count(gpus)} each{extra}, and the assumed cluster has "
            f"{machines(there)} with {gpu_count(each)} each"
        )
        fix = f"set trainer.nodes to {there} and trainer.gpus to {each}" if change else "use fewer, or add machines"
        yield of_hardware.error("P1", message, fix, (GPUS, NODES), change)
    elif nodes > 1 and not subject.joins_cluster:
        message = f"a run over {machines(nodes)} joins a Ray cluster, and cluster.address is not set"
        fix = "set cluster.address to auto on the head of the cluster, or to its address; or use preset export --slurm"
        yield of_hardware.warning("P1", message, fix, (NODES, "cluster.address"), {"cluster.address": "auto"})


def engines_over_gpus(subject: Subject) -> Findings:
    """P2: the GPUs divide evenly into engines."""
    tensor, total, engine = subject.whole(TENSOR), subject.gpus, subject.engine_size
    if tensor is None or total % engine == 0 or not subject.has_hybrid_engine:
        return
    others = engine // tensor
    better = [size for size in dividing(total, tensor) if total % (size * others) == 0] or [1]
    message = (
        f"an engine spans {counted(engine, 'GPU')}, which does not divide the {counted(total, 'GPU')} of the run: "
        "veRL fails after loading the models"
    )
    fix = f"set {TENSOR} to {one_of(better)}"
    yield error("P2", message, fix, [TENSOR, GPUS, NODES], {"rollout.tensor_model_parallel_size": better[0]})


def cpus(subject: Subject) -> Findings:
    """P3: Ray has a CPU for each process that reserves one; with fewer, veRL hangs without a message."""
    said = subject.whole(RAY_CPUS)
    if subject.joins_cluster or (said is None and subject.machine.assumed):
        return
    have = said if said is not None else subject.machine.cpus
    each = cpus_a_gpu(subject)
    own = subject.whole(ENGINE_GPUS) or 0 if subject.is_separate else 0
    workers = each * (subject.whole(GPUS) or 1)
    units = subject.whole(UNITS) if subject.is_v1 else 0
    if units is None:
        return
    need = workers + 2 * own + 1 + units  # veRL: `RolloutReplica.init_standalone` takes 2
    if have >= need:
        return
    storage = f"{units} for storage + " if units else ""
    apart = f" + 2 x {gpu_count(own)} for engines" if own else ""
    queue = "its controller" if units else "the trainer"
    source = f"{RAY_CPUS} allows" if said is not None else "this machine has"
    message = (
        f"Ray needs {storage}1 for {queue} + {each} x {gpu_count(workers // each)}{apart} = {need} CPUs, and {source} "
        f"{have}: veRL would hang without a message"
    )
    fix = _room(units, need, have)
    change = {"cluster.cpus": need} if have >= 2 or said is not None else None
    yield error("P3", message, fix, [RAY_CPUS, UNITS, GPUS], change)


def cpus_a_gpu(subject: Subject) -> int:
    """CPUs that veRL reserves for each GPU of the trainer: `ResourcePoolManager.max_colocate_count`."""
    return 3 if subject.at_least("0.7.0") else 1


def addresses(subject: Subject) -> Findings:
    """CLUSTER-1: the address is one that can be joined, or with `submit` a dashboard."""
    cluster = subject.loaded.preset.cluster
    address = cluster.address
    if address is not None and address.startswith("ray://"):
        message = "cluster.address is a Ray Client address (ray://), which veRL does not support"
        fix = "set cluster.address to host:6379 of the head; with cluster.submit to its dashboard, host:8265"
        yield error("CLUSTER-1", message, fix, ["cluster.address"])
    elif cluster.submit:
        try:
            jobs.url_of(address)
        except UserError as problem:
            fix = problem.hint or "set cluster.address to host:8265"
            yield error("CLUSTER-1", problem.message, fix, ["cluster.address"])


def _room(units: int, need: int, have: int) -> str:
    least = need - units + 1
    if units > 1 and have >= least:
        return f"set {UNITS} to {have - least + 1} or less"
    return f"set cluster.cpus to {need}: Ray only counts them, and two real CPUs are enough to start"


RULES = (gpus, engines_over_gpus, cpus, addresses)
