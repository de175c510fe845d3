"""The run's requirements on the machine, P1 to P3, and ppo-tui's CPU platform (`trainer.device=cpu`).

veRL: `verl/single_controller/ray/base.py: ResourcePoolManager._check_resource_available` and `RayResourcePool`,
`verl/workers/engine_workers.py: ActorRolloutRefWorker.init_model`.
"""

from launcher.check.config.base import Findings, dividing, gpu_count
from launcher.check.finding import Words, found
from launcher.check.subject import Subject
from launcher.core.errors import UserError
from launcher.inside.ppo_tui_inside import SUPPORTED
from launcher.machine import ray_jobs as jobs
from launcher.verl.config import ACTOR, CRITIC, ENGINE_GPUS, GPUS, MODEL, NODES, REF, ROLLOUT, TENSOR

UNITS = "transfer_queue.backend.SimpleStorage.num_data_storage_units"
RAY_CPUS = "ray_kwargs.ray_init.num_cpus"


def gpus(subject: Subject) -> Findings:
    """P1: the GPUs exist; a run on several machines joins a Ray cluster."""
    if subject.machine.nodes is not None:
        yield from _over_nodes(subject, subject.machine.nodes)
        return
    if subject.joins_cluster:
        return
    own = subject.engine_gpus
    wanted, nodes = subject.gpus + own, subject.whole(NODES) or 1
    if nodes > 1 and not subject.machine.assumed:
        yield found("P1.nodes", nodes=nodes)
        return
    there = len(subject.machine.gpus)
    if subject.on_cpu or wanted <= there:
        return
    engine = f" ({subject.gpus} to train, {own} for the engine alone)" if own else ""
    words: Words = {
        "wanted": wanted,
        "engine": engine,
        "where": "the assumed machine has" if subject.machine.assumed else "this machine has",
        "have": gpu_count(there) if there else "no GPU",
    }
    if own and there:
        yield found("P1.apart" if there > own else "P1.shared", **words, left=there - own, own=own)
    elif there >= nodes:
        yield found("P1.fewer", **words, each=there // nodes)
    else:
        yield found("P1.one" if there else "P1.none", **words, there=there)


def _over_nodes(subject: Subject, there: int) -> Findings:
    """P1 for a described cluster: each machine has the GPUs that veRL requests.

    veRL: `RayResourcePool.get_placement_groups`: a STRICT_PACK group for each; two of them may share a machine.
    """
    gpus, nodes, own = subject.whole(GPUS) or 1, subject.whole(NODES) or 1, subject.engine_gpus
    each = len(subject.machine.gpus) // there
    if there * (each // gpus) < nodes or subject.gpus + own > there * each:
        extra = f" and {gpu_count(own)} for the engine alone" if own else ""
        yield found("P1.few" if own else "P1.machines", nodes=nodes, gpus=gpus, extra=extra, there=there, each=each)
    elif nodes > 1 and not subject.joins_cluster:
        yield found("P1.address", nodes=nodes)


def engines_over_gpus(subject: Subject) -> Findings:
    """P2: the GPUs divide evenly into engines."""
    tensor, total, engine = subject.whole(TENSOR), subject.gpus, subject.engine_size
    if tensor is None or total % engine == 0 or not subject.has_hybrid_engine:
        return
    others = engine // tensor
    better = [size for size in dividing(total, tensor) if total % (size * others) == 0] or [1]
    yield found("P2", engine=engine, total=total, better=better)


def cpus(subject: Subject) -> Findings:
    """P3: Ray has a CPU for each process that reserves one; otherwise, veRL hangs without a message."""
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
    least = need - units + 1
    variant = "storage" if units > 1 and have >= least else "count" if have >= 2 or said is not None else "one"
    yield found(
        f"P3.{variant}",
        storage=storage,
        queue=queue,
        each=each,
        gpus=workers // each,
        apart=apart,
        need=need,
        source=source,
        have=have,
        units=have - least + 1,
    )


def cpus_a_gpu(subject: Subject) -> int:
    """CPUs that veRL reserves for each GPU of the trainer: `ResourcePoolManager.max_colocate_count`."""
    return 3 if subject.at_least("0.7.0") else 1


def addresses(subject: Subject) -> Findings:
    """CLUSTER-1: the address can be joined or, with `submit`, is a dashboard."""
    cluster = subject.loaded.preset.cluster
    address = cluster.address
    if address is not None and address.startswith("ray://"):
        yield found("CLUSTER-1.client")
    elif cluster.submit:
        try:
            jobs.url_of(address)
        except UserError as problem:
            fix = problem.hint or "set cluster.address to host:8265"
            yield found("CLUSTER-1.url", message=problem.message, fix=fix)


def cpu_version(subject: Subject) -> Findings:
    """CPU-1: the CPU platform supports one version of veRL."""
    if subject.on_cpu and subject.version != SUPPORTED:
        yield found("CPU-1", version=subject.version, python=subject.python)


def cpu_sharding(subject: Subject) -> Findings:
    """CPU-2: fsdp does not work on a CPU, fsdp2 does."""
    if not subject.on_cpu:
        return
    blocks = [ACTOR, *([REF] if subject.has_reference else []), *([CRITIC] if subject.has_critic else [])]
    for block in blocks:
        key = f"{block}.strategy"
        if subject.get(key) == "fsdp":
            yield found("CPU-2", key=key, group=block.rpartition(".")[2])


def cpu_engine(subject: Subject) -> Findings:
    """CPU-3: the rollout engine is `hf`, ppo-tui's own; vLLM and SGLang require a GPU."""
    key = f"{ROLLOUT}.name"
    if subject.on_cpu and subject.get(key) in ("vllm", "sglang", "trtllm"):
        yield found("CPU-3", value=subject.get(key))


def memory_savers(subject: Subject) -> Findings:
    """CPU-4: fused kernels and activation offloading require a GPU."""
    for name in ("use_fused_kernels", "enable_activation_offload"):
        key = f"{MODEL}.{name}"
        if subject.on_cpu and subject.get(key) is True:
            yield found("CPU-4", key=key, name=name)


RULES = (gpus, engines_over_gpus, cpus, addresses, cpu_version, cpu_sharding, cpu_engine, memory_savers)
