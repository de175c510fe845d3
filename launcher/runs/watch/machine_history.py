"""Machine samples of a run as series over time, for the charts of the machine page."""

import dataclasses
import itertools
import math
import statistics
from array import array
from collections.abc import Iterable
from typing import Literal

from launcher.core.format import GIB
from launcher.metrics.store import Series
from launcher.record.machine import GpuSample, MachineSample

Figure = Literal["host", "rss", "used", "run_used", "util", "power"]
Device = int | str
_PAUSE = 10  # multiple of the usual sampling interval beyond which nothing ran


class MachineHistory:
    """All samples of gpu.jsonl. `times` ascend, in unix seconds; the steps of a series are indices into it."""

    def __init__(self) -> None:
        self.times: array[float] = array("d")
        self._latest: MachineSample | None = None
        self._final: MachineSample | None = None  # the last sample with processes of the run
        self._missing: str | None = None
        self._disk: MachineSample | None = None  # the last sample that has it
        self._details: dict[Device, GpuSample] = {}  # the last detailed sample of each GPU
        self._series: dict[tuple[Figure, Device | None], Series] = {}

    def add(self, sample: MachineSample) -> None:
        """Adds one line. A thinned file is reread from its start, without known samples."""
        if self.times and sample.t <= self.times[-1]:
            return
        index = len(self.times)
        self.times.append(sample.t)
        self._append("host", None, index, sample.host.used, GIB)
        if sample.host.cores and sample.host.busy is not None and not sample.nodes:
            self._append("util", "host", index, 100 * sample.host.busy / sample.host.cores, 1)
        self._disk = sample if sample.disk else self._disk
        self._append("rss", None, index, sample.run.rss, GIB)
        for node in sample.nodes:
            self._append("used", f"host {node.name}", index, node.used, GIB)
            self._append("run_used", f"host {node.name}", index, node.run_used, GIB)
        for gpu in sample.gpus:
            self._append("used", gpu.index, index, gpu.used, GIB)
            self._append("run_used", gpu.index, index, gpu.run_used, GIB)
            self._append("util", gpu.index, index, gpu.util, 1)
            self._append("power", gpu.index, index, gpu.power, 1)
            if gpu.holders is not None or gpu.power_limit is not None or gpu.slow_at is not None:
                self._details[gpu.index] = _completed(gpu, self._details.get(gpu.index))
        self._latest = sample
        if sample.shows_run:
            self._final = sample
        self._missing = None if sample.gpus else sample.missing or self._missing

    @property
    def latest(self) -> MachineSample | None:
        """The newest sample, completed with details of earlier ones; None before the first."""
        return self._complete(self._latest)

    @property
    def final(self) -> MachineSample | None:
        """The last sample with processes of the run, otherwise the newest."""
        return self._complete(self._final or self._latest)

    def _complete(self, sample: MachineSample | None) -> MachineSample | None:
        if sample is None:
            return None
        gpus = tuple(_completed(gpu, self._details.get(gpu.index)) for gpu in sample.gpus)
        disk, saved = (self._disk.disk, self._disk.saved) if self._disk else (None, None)
        return dataclasses.replace(sample, gpus=gpus, missing=self._missing, disk=disk, saved=saved)

    @property
    def gpu(self) -> GpuSample | None:
        """The first GPU that the run uses, otherwise the first one; None without GPUs."""
        gpus = self._latest.gpus if self._latest else ()
        return next((gpu for gpu in gpus if gpu.run_used), gpus[0] if gpus else None)

    def series(self, figure: Figure, device: Device | None = None) -> Series | None:
        """GiB (`util`: %, `power`: W) per sample, nan if missing; None if no sample has it."""
        return self._series.get((figure, device))

    def energy(self, devices: Iterable[Device]) -> float | None:
        """The energy use of these GPUs in kWh; None if none reports its power. Pauses between attempts count as 0."""
        found = [series for device in devices if (series := self.series("power", device)) is not None]
        spans = [after - before for before, after in itertools.pairwise(self.times)]
        if not found or not spans:
            return None
        longest = _PAUSE * statistics.median(spans)
        watt_seconds = 0.0
        for series in found:
            for place, (first, second) in enumerate(itertools.pairwise(series.values)):
                span = self.times[series.steps[place + 1]] - self.times[series.steps[place]]
                if span <= longest and math.isfinite(first) and math.isfinite(second):
                    watt_seconds += span * (first + second) / 2
        return watt_seconds / 3.6e6

    def _append(self, figure: Figure, device: Device | None, index: int, value: float | None, unit: int) -> None:
        series = self._series.get((figure, device))
        if series is None:
            if value is None:
                return
            series = self._series[figure, device] = Series()
        series.append(index, math.nan if value is None else value / unit)


def _completed(gpu: GpuSample, before: GpuSample | None) -> GpuSample:
    """A GPU with details missing in this sample."""
    if before is None:
        return gpu
    return dataclasses.replace(
        gpu,
        power_limit=gpu.power_limit if gpu.power_limit is not None else before.power_limit,
        slow_at=gpu.slow_at if gpu.slow_at is not None else before.slow_at,
        holders=gpu.holders if gpu.holders is not None else before.holders,
    )
