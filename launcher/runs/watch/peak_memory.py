"""The peak memory of a run on a GPU, and how much of it the run needed.

torch keeps freed memory in a cache and returns it to the GPU before it runs out. veRL empties this cache before the
engine wakes up (`verl/utils/memory_utils.py: aggressive_empty_cache`), so only stages of training can have one.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence

from launcher.check.tuning import Peak
from launcher.health import keys
from launcher.record.layout import RunDir
from launcher.record.machine import MachineSample
from launcher.record.spans import TRAINER, SpanTail

_TRAINS = ("old_log_prob", "ref", "values", "adv", "update_critic", "update_actor")  # the trainer's timers


def peak_memory(run: RunDir, rows: Iterable[Mapping[str, float]]) -> Peak | None:
    """The peak of a run with these metrics of its steps; without a GPU, that of the run's processes and of the host.
    None if nothing was sampled.
    """
    gpus: list[Peak] = []
    host: list[Peak] = []
    cached, trains = _cached(list(rows)), _training(run)
    if run.machine.exists():
        for line in run.machine.read_bytes().splitlines():
            if (sample := MachineSample.from_line(line)) is None:
                continue
            free = cached if _within(sample.t, trains) else 0
            gpus += [Peak(gpu.used, gpu.total, gpu.used - free) for gpu in sample.gpus if gpu.used is not None]
            if (rss := sample.run.rss) is not None:
                host.append(Peak(rss, sample.host.total, rss))
    most = max(gpus or host, default=None, key=lambda peak: peak.used)
    return most and most._replace(needed=max(peak.needed for peak in gpus or host))


def _cached(rows: Sequence[Mapping[str, float]]) -> int:
    """Bytes that the training process reserved at most beyond those of its tensors; 0 where it logs no such metric."""
    reserved, allocated = (
        max((row[key] for row in rows for group in groups for key in group if key in row), default=0.0)
        for groups in (keys.RESERVED_MEMORY, keys.ALLOCATED_MEMORY)
    )
    return int((reserved - allocated) * 2**30) if allocated else 0


def _training(run: RunDir) -> list[tuple[float, float]]:
    """When the newest attempt trained, in unix seconds."""
    attempt = run.last_attempt()
    spans = SpanTail(attempt, whole=True).read() if attempt else ()
    return sorted(
        (span.start, span.end) for span in spans if span.lane == TRAINER and span.name in _TRAINS and span.end
    )


def _within(t: float, periods: Sequence[tuple[float, float]]) -> bool:
    at = bisect_right(periods, (t, float("inf")))
    return at > 0 and t <= periods[at - 1][1]
