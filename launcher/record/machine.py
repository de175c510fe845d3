"""Samples of a run's machine, one line of gpu.jsonl each: memory, utilization, power, temperature."""

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from launcher.metrics.host import HostLoad
from launcher.metrics.records import parse_object
from launcher.record.json import RARE, Record

_FULL = 1 << 18  # free bytes of a full disk: the supervisor's reserve may be free
_SHORT = 0.05  # share of the memory
_DRIVER = 1 << 30  # bytes that the driver itself may hold on a GPU, without a process


@dataclass(frozen=True, slots=True)
class Holder(Record):
    """A process with `used` bytes of a GPU, None if unknown; `whose`: run, others or unknown."""

    pid: int
    whose: str = "unknown"
    name: str | None = None
    user: str | None = None
    used: int | None = None


@dataclass(frozen=True, slots=True)
class GpuSample(Record):
    """One GPU or MIG slice (`0:1`): bytes, %, watts, °C; None if NVML does not report it.

    `run_used`: bytes of the run itself. `slowed`: why the clocks are reduced. Values that seldom change (`reserved`
    bytes of the driver, limits, `holders`) are not in every sample.
    """

    index: int | str
    name: str = ""
    used: int | None = None
    total: int | None = None
    util: int | None = None
    power: int | None = None
    temp: int | None = None
    run_used: int | None = None
    slowed: tuple[str, ...] = field(default=(), metadata=RARE)
    reserved: int | None = field(default=None, metadata=RARE)
    power_limit: int | None = field(default=None, metadata=RARE)
    slow_at: int | None = field(default=None, metadata=RARE)
    holders: tuple[Holder, ...] | None = field(default=None, metadata=RARE)

    @property
    def only_of_run(self) -> bool:
        """Whether the run uses its memory and, as far as known, nobody else does: then its utilization is the run's."""
        return bool(self.used and self.run_used) and (self.used or 0) - (self.run_used or 0) < _DRIVER

    @property
    def in_use(self) -> bool:
        """Whether programs use much of its memory, more than the driver or a desktop would."""
        return bool(self.used and self.total) and (self.used or 0) * 20 > (self.total or 0)


@dataclass(frozen=True, slots=True)
class HostSample(Record):
    """Memory of the machine or container in bytes. `busy`: used cores of `cores`; `stolen`: cores used by other guests
    of the hypervisor, since the last sample. `waiting`: share of the last 10 s in which a task waited for a core.
    """

    used: int | None = None
    total: int | None = None
    load: float | None = field(default=None, metadata=RARE)
    cores: int | None = field(default=None, metadata=RARE)
    busy: float | None = field(default=None, metadata=RARE)
    stolen: float | None = field(default=None, metadata=RARE)
    waiting: float | None = field(default=None, metadata=RARE)

    @property
    def short(self) -> bool:
        """Whether less than 5 % of the memory is available."""
        return bool(self.used and self.total) and (self.total or 0) - (self.used or 0) < _SHORT * (self.total or 0)


@dataclass(frozen=True, slots=True)
class DiskSpace(Record):
    """Bytes of a folder's file system; `free`: available to this user."""

    path: str
    free: int
    total: int

    @property
    def full(self) -> bool:
        """Whether there is no space for a file of a checkpoint's size."""
        return self.free < _FULL


@dataclass(frozen=True, slots=True)
class Saved(Record):
    """The number of checkpoints that an attempt wrote and veRL did not remove, and bytes of the newest."""

    count: int
    newest: int


@dataclass(frozen=True, slots=True)
class NodeSample(Record):
    """Memory of a cluster node in bytes; `run_used`: the run's. Its GPUs are `name/0`, `name/1`, ..."""

    name: str
    used: int | None = None
    total: int | None = None
    run_used: int | None = field(default=None, metadata=RARE)


@dataclass(frozen=True, slots=True)
class ProcessesSample(Record):
    """Private bytes of the run's processes, and CPU cores used since the last sample."""

    rss: int | None = None
    cores: float | None = field(default=None, metadata=RARE)


@dataclass(frozen=True, slots=True)
class MachineSample(Record):
    """The machine at `t`, in unix seconds. `missing`: why there are no GPU metrics, only in some samples.

    For a run on a cluster, `nodes` are all nodes with their GPUs, and `host` is the node with the least free memory;
    `away`: why only this machine is known. `disk`: the checkpoints' disk; some samples also have the `saved`
    checkpoints.
    """

    t: float
    host: HostSample = HostSample()
    run: ProcessesSample = ProcessesSample()
    gpus: tuple[GpuSample, ...] = ()
    missing: str | None = field(default=None, metadata=RARE)
    nodes: tuple[NodeSample, ...] = field(default=(), metadata=RARE)
    away: str | None = field(default=None, metadata=RARE)
    disk: DiskSpace | None = field(default=None, metadata=RARE)
    saved: Saved | None = field(default=None, metadata=RARE)

    def of_unknown(self) -> "MachineSample":
        """The sample without the run's processes, which are unknown."""
        gpus = (
            replace(gpu, run_used=None, holders=gpu.holders and tuple(replace(h, whose="unknown") for h in gpu.holders))
            for gpu in self.gpus
        )
        return replace(self, run=ProcessesSample(), gpus=tuple(gpus))

    @property
    def shows_run(self) -> bool:
        """Whether processes of the run hold memory."""
        return any(gpu.run_used for gpu in self.gpus) if self.gpus else bool(self.run.rss)

    @property
    def room(self) -> int | None:
        """The number of further checkpoints of the newest one's size that fit on the disk."""
        return self.disk.free // self.saved.newest if self.disk and self.saved and self.saved.newest else None

    @property
    def host_load(self) -> HostLoad | None:
        """CPU use on this machine; None if unknown, or if the run uses other machines."""
        host, own = self.host, self.run.cores
        if self.nodes or host.load is None or host.cores is None or host.busy is None or own is None:
            return None
        others = max(host.busy - own, 0.0)
        return HostLoad(host.load, host.cores, host.busy, others, host.stolen or 0.0, host.waiting)

    def among(self, cluster: "MachineSample", here: str) -> "MachineSample":
        """This machine, named `here`, joined with its cluster: only local GPUs show the run's memory."""
        own = NodeSample(here, self.host.used, self.host.total, self.run.rss)
        nodes = (own, *(node for node in cluster.nodes if node.name != here))
        gpus = [replace(gpu, index=f"{here}/{gpu.index}") for gpu in self.gpus]
        gpus += [gpu for gpu in cluster.gpus if not str(gpu.index).startswith(f"{here}/")]
        return replace(self, host=_tightest(nodes), gpus=tuple(gpus), nodes=nodes)

    @classmethod
    def of_cluster(cls, t: float, summary: Iterable[Any]) -> "MachineSample":
        """The nodes reported by a Ray dashboard, without nodes that are gone or report nothing.

        Ray 2.60: `ray/dashboard/modules/reporter/reporter_agent.py: _async_collect_stats` (memory in bytes) and
        `gpu_providers.py: GpuUtilizationInfo` (memory in MiB, power in mW), with camelCase keys.
        """
        nodes, gpus = list[NodeSample](), list[GpuSample]()
        for node in summary:
            with contextlib.suppress(LookupError, TypeError, ValueError):
                total, _, _, used = node["mem"]
                if node["raylet"]["state"] != "ALIVE":
                    continue
                name = str(node["hostname"])
                if any(name == each.name for each in nodes):  # two nodes on one machine
                    name += f"-{node['raylet']['nodeId'][:4]}"
                gpus += [_gpu(name, gpu) for gpu in node.get("gpus") or ()]
                nodes.append(NodeSample(name, int(used), int(total)))
        missing = None if gpus else "the Ray dashboard reports no GPU of the nodes"
        return cls(t, _tightest(nodes), gpus=tuple(gpus), missing=missing, nodes=tuple(nodes))

    @classmethod
    def from_line(cls, line: bytes) -> "MachineSample | None":
        """The sample of a line of gpu.jsonl; None if damaged."""
        try:
            return cls.from_json(parse_object(line))
        except ValueError:
            return None


def _tightest(nodes: Iterable[NodeSample]) -> HostSample:
    """The memory of the node with the least free memory."""
    found = max(nodes, key=lambda node: (node.used or 0) / max(1, node.total or 1), default=NodeSample(""))
    return HostSample(found.used, found.total)


def _gpu(node: str, told: Any) -> GpuSample:
    power, mib = told.get("powerMw"), 1 << 20
    return GpuSample(
        f"{node}/{told['index']}",
        str(told.get("name", "")),
        used=int(told["memoryUsed"]) * mib,
        total=int(told["memoryTotal"]) * mib,
        util=told.get("utilizationGpu"),
        power=None if power is None else round(power / 1000),
        temp=told.get("temperatureC"),
    )
