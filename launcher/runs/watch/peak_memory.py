"""The peak GPU memory of a run, and the part that it needed.

torch caches freed memory and returns it before the GPU is full. veRL empties this cache before the engine wakes up
(`verl/utils/memory_utils.py: aggressive_empty_cache`), so only training stages can have one.
"""

from collections.abc import Mapping, Sequence

from launcher.console.phases import PHASE_OF_TIMER, TRAINING
from launcher.core.format import GIB
from launcher.core.tail import records
from launcher.estimate.tuning import Peak
from launcher.health import keys
from launcher.record.layout import RunDir
from launcher.record.machine import MachineSample
from launcher.record.spans import TRAINER, SpanTail, within


def peak_memory(run: RunDir, rows: Sequence[Mapping[str, float]]) -> Peak | None:
    """The peak of a run with these metrics; without a GPU, of its processes and the host. None without a sample."""
    gpus: list[Peak] = []
    host: list[Peak] = []
    cached, trained = _cached(rows), _trained(run)
    for sample in filter(None, map(MachineSample.from_line, records(run.machine))):
        free = cached if within(trained, sample.t) else 0
        gpus += [Peak(gpu.used, gpu.total, gpu.used - free) for gpu in sample.gpus if gpu.used is not None]
        if (rss := sample.run.rss) is not None:
            host.append(Peak(rss, sample.host.total, rss))
    most = max(gpus or host, default=None, key=lambda peak: peak.used)
    return most and most._replace(needed=max(peak.needed for peak in gpus or host))


def _cached(rows: Sequence[Mapping[str, float]]) -> int:
    """Bytes of torch's cache: the training process's peak reserved memory minus its peak allocated memory.

    0 without these metrics, and if the rollout has its own GPUs, which have no such cache.
    """
    if any(key.startswith(keys.SEPARATE) for row in rows for key in row):
        return 0
    reserved, allocated = (
        max((row[key] for row in rows for group in groups for key in group if key in row), default=0.0)
        for groups in (keys.RESERVED_MEMORY, keys.ALLOCATED_MEMORY)
    )
    return int((reserved - allocated) * GIB) if allocated else 0


def _trained(run: RunDir) -> list[tuple[float, float]]:
    """Start and end of each training stage of the newest attempt, in unix seconds."""
    attempt = run.last_attempt()
    spans = SpanTail(attempt, whole=True).read() if attempt else ()
    stages = (span for span in spans if span.lane == TRAINER and PHASE_OF_TIMER.get(span.name) in TRAINING)
    return sorted((span.start, span.end) for span in stages if span.end)
