"""CPU use of other processes on the host during a step (ppo-tui's own metrics), and whether it explains a slow step."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from launcher.core.format import counted, number

PREFIX = "machine/"
_BUSY, _TAKEN, _STOLEN = 0.9, 0.2, 0.1  # shares of all cores: in use, by other programs, by other guests
_SLOW = 1.3  # multiple of its usual time that every main stage takes
_MAIN = 0.05  # share of the usual step


class HostLoad(NamedTuple):
    """Means over a step: load average, cores, cores in use by all processes, by other programs, and by other guests of
    the hypervisor; `waiting`: share of time in which a task waited for a core (PSI).
    """

    load: float
    cores: float
    busy: float
    others: float
    stolen: float = 0.0
    waiting: float | None = None

    @classmethod
    def of(cls, data: Mapping[str, float]) -> "HostLoad | None":
        """The host load of a step, from its metrics; None if not sampled."""
        found = {name: data[PREFIX + key] for name, key in _KEYS.items() if PREFIX + key in data}
        return cls(**found) if found.keys() >= _NEEDED and found["cores"] > 0 else None

    @classmethod
    def mean(cls, loads: Sequence["HostLoad"]) -> "HostLoad":
        """The means of several samples."""
        waits = [load.waiting for load in loads if load.waiting is not None]
        names = [name for name in cls._fields if name != "waiting"]
        means = {name: fmean(getattr(load, name) for load in loads) for name in names}
        return cls(**means, waiting=fmean(waits) if waits else None)

    def metrics(self) -> dict[str, float]:
        """The metrics of a step or of a sample."""
        values = {key: getattr(self, name) for name, key in _KEYS.items()}
        return {PREFIX + key: round(value, 3) for key, value in values.items() if value is not None}

    @property
    def crowded(self) -> bool:
        """Whether other processes use so much of the CPUs that the run lacks them."""
        full = self.busy + self.stolen >= _BUSY * self.cores
        return full and max(self.others / _TAKEN, self.stolen / _STOLEN) >= self.cores

    @property
    def words(self) -> str:
        """`other processes on the host: load 60 on 2 cores (they use 1.7)`."""
        on = f"load {number(self.load, 2)} on {counted(round(self.cores), 'core')}"
        if self.stolen >= _STOLEN * self.cores:
            return f"other guests of the hypervisor: {100 * self.stolen / self.cores:.0f} % of the CPU (steal), {on}"
        if not self.crowded:
            return f"{on}, other processes use {number(self.others, 2)}"
        wait = "" if self.waiting is None else f", tasks wait for a core {100 * self.waiting:.0f} % of the time"
        return f"other processes on the host: {on} (they use {number(self.others, 2)}{wait})"


_KEYS = {
    "load": "load",
    "cores": "cores",
    "busy": "busy_cores",
    "others": "other_cores",
    "stolen": "stolen_cores",
    "waiting": "cpu_pressure",
}
_NEEDED = {"load", "cores", "busy", "others"}
LOAD = (PREFIX + "load",)


def slow_together(now: Mapping[str, float], usual: Mapping[str, float]) -> bool:
    """Whether all main stages were slower than usual (seconds by stage), so that no single one is the reason."""
    whole = sum(usual.values())
    main = [name for name, seconds in usual.items() if seconds > _MAIN * whole and seconds > 0]
    return len(main) > 1 and all(now.get(name, 0.0) > _SLOW * usual[name] for name in main)
