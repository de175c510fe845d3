"""The Ray cluster that a run is submitted to, as its dashboard answers now."""

from collections.abc import Iterator

from launcher.errors import UserError
from launcher.jobs import Cluster
from launcher.preflight.config.base import gpu_count
from launcher.preflight.finding import Finding, of_hardware, of_software
from launcher.preflight.subject import Subject
from launcher.verl_config import GPUS, NODES

_KEYS = ("cluster.address",)
_QUEUE = "TransferQueueController"  # transfer_queue/interface.py: one name for the whole cluster


def checks(subject: Subject) -> Iterator[Finding]:
    """CLUSTER-2: the cluster answers; CLUSTER-3: it has the GPUs; CLUSTER-4: nobody else's queue is in the way."""
    preset = subject.loaded.preset
    if not preset.cluster.submit or subject.machine.assumed:
        return
    try:
        cluster = Cluster(preset.cluster.address)
        version, resources, actors = cluster.version(), cluster.resources(), cluster.actors(_QUEUE)
    except UserError as error:
        fix = "start the cluster, or set cluster.address to its dashboard, host:8265"
        yield of_hardware.error("CLUSTER-2", str(error), fix, _KEYS)
        return
    yield from _gpus(subject, resources)
    if actors and subject.is_v1:
        message = "another veRL run is on this cluster, and both would use its TransferQueue: one of them fails"
        yield of_software.error("CLUSTER-4", message, "wait for its end, or use another cluster", _KEYS)
    yield of_hardware.info("CLUSTER-2", f"{cluster.url} answers: Ray {version}", "nothing to do", _KEYS)


def _gpus(subject: Subject, resources: dict[str, tuple[float, float]]) -> Iterator[Finding]:
    """veRL: `verl/single_controller/ray/base.py: ResourcePoolManager._check_resource_available`, at once."""
    wanted = subject.gpus + subject.engine_gpus
    used, total = resources.get("GPU", (0.0, 0.0))
    if not resources or wanted <= total - used:
        return
    message = f"the run requires {gpu_count(wanted)}, and of {gpu_count(int(total))} of the cluster {used:g} are taken"
    if wanted > total:
        message = f"the run requires {gpu_count(wanted)}, and the cluster has {int(total) or 'none'}"
    yield of_hardware.error(
        "CLUSTER-3", message, "use fewer (trainer.gpus, trainer.nodes), or wait until they are free", (GPUS, NODES)
    )
