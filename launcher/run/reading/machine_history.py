"""The memory samples of a run as series over time: what the charts of the GPU page are drawn from."""

import math
from array import array
from collections.abc import Mapping
from typing import Any, Literal

from launcher.format import GIB
from launcher.metrics.store import Series

Figure = Literal["host", "rss", "used", "run_used", "util"]
Device = int | str
_DETAILS = ("power_limit", "slow_at", "holders")  # not in every sample


class MemoryHistory:
    """All samples of gpu.jsonl. `times` ascend, in unix seconds; the steps of a series are indices into it.

    `latest` is the newest sample, completed by the details that an earlier one told; None before the first.
    """

    def __init__(self) -> None:
        self.times: array[float] = array("d")
        self.latest: dict[str, Any] | None = None
        self._series: dict[tuple[Figure, Device | None], Series] = {}

    def add(self, sample: Mapping[str, Any]) -> None:
        """Takes in one line. A thinned file is read again from its start: what is known is left out."""
        t = sample.get("t")
        if not isinstance(t, (int, float)) or (self.times and t <= self.times[-1]):
            return
        index = len(self.times)
        self.times.append(float(t))
        host, run = sample.get("host") or {}, sample.get("run") or {}
        self._append("host", None, index, host.get("used"), GIB)
        self._append("rss", None, index, run.get("rss"), GIB)
        gpus = sample.get("gpus") or []
        for gpu in gpus:
            device = gpu.get("index")
            self._append("used", device, index, gpu.get("used"), GIB)
            self._append("run_used", device, index, gpu.get("run_used"), GIB)
            self._append("util", device, index, gpu.get("util"), 1)
        before = self.latest or {}
        known = {gpu.get("index"): gpu for gpu in before.get("gpus") or []}
        self.latest = {
            **({"missing": before["missing"]} if before.get("missing") and not gpus else {}),
            **sample,
            "gpus": [{**_details(known.get(gpu.get("index"), {})), **gpu} for gpu in gpus],
        }

    def series(self, figure: Figure, device: Device | None = None) -> Series | None:
        """GiB (`util`: per cent) over the samples, nan where one lacks it; None when none had it."""
        return self._series.get((figure, device))

    def _append(self, figure: Figure, device: Device | None, index: int, value: Any, unit: float) -> None:
        known = isinstance(value, (int, float))
        series = self._series.get((figure, device))
        if series is None:
            if not known:
                return
            series = self._series[figure, device] = Series()
        series.append(index, value / unit if known else math.nan)


def _details(gpu: Mapping[str, Any]) -> dict[str, Any]:
    return {key: gpu[key] for key in _DETAILS if key in gpu}
