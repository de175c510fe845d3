"""Samples of a run's machine, one line of gpu.jsonl each: memory, utilization, power, heat."""

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from launcher.metrics.host import HostLoad
from launcher.metrics.records import parse_object
from launcher.record.json import RARE, Record

_FULL = 1 << 18  # bytes of a disk that is full: those that the supervisor reserves for its own records may be free
_SHORT = 0.05  # of the memory
_DRIVER = 1 << 30  # bytes that the driver itself may hold on a GPU, without a process


@dataclass(frozen=True, slots=True)
class Holder(Record):
    """A process that holds `used` bytes of a GPU, None when unknown; `whose` is run, others or unknown."""

    pid: int
    whose: str = "unknown"
    name: str | None = None
    user: str | None = None
    used: int | None = None


@dataclass(frozen=True, slots=True)
class GpuSample(Record):
    """One GPU, or one MIG slice (`0:1`): bytes, %, watts, °C; None if NVML does not report it.

    `run_used` are the bytes of the run itself, `slowed` why the clocks are reduced. Values that seldom change
    (`reserved` bytes of the driver, limits, `holders`) are not in every sample.
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
        """Whether the run holds memory of it and, as far as is known, nobody else: then its work is the run's."""
        return bool(self.used and self.run_used) and (self.used or 0) - (self.run_used or 0) < _DRIVER

    @property
    def in_use(self) -> bool:
        """Whether programs hold much of its memory, more than the driver or a desktop would."""
        return bool(self.used and self.total) and (self.used or 0) * 20 > (self.total or 0)


@dataclass(frozen=True, slots=True)
class HostSample(Record):
    """Bytes of the machine's memory, or of the container's. `cores` of CPU are `busy`, and `stolen` by other guests of
    the hypervisor, since the last sample; `waiting` is the share of the last 10 s in which a task waited for one.
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
    """Bytes of the file system of a folder; `free` are those that this user can still write."""

    path: str
    free: int
    total: int

    @property
    def full(self) -> bool:
        """Whether nothing of the size of a checkpoint can be written any more."""
        return self.free < _FULL


@dataclass(frozen=True, slots=True)
class Saved(Record):
    """The checkpoints that an attempt has written and veRL has not removed: their number, and bytes of the newest."""

    count: int
    newest: int


@dataclass(frozen=True, slots=True)
class NodeSample(Record):
    """Memory of a cluster node in bytes; `run_used` is the run's part. Its GPUs are `name/0`, `name/1`, ..."""

    name: str
    used: int | None = None
    total: int | None = None
    run_used: int | None = field(default=None, metadata=RARE)


@dataclass(frozen=True, slots=True)
class ProcessesSample(Record):
    """Private bytes of the run's processes, and the CPU cores that they used since the last sample."""

    rss: int | None = None
    cores: float | None = field(default=None, metadata=RARE)


@dataclass(frozen=True, slots=True)
class MachineSample(Record):
    """The machine at `t`, in unix seconds. `missing` says now and then why there are no GPU metrics. For a run on a
    cluster, `nodes` are all nodes with their GPUs and `host` is the one with the least free memory; `away` says why
    there is only this machine. `disk` is that of the checkpoints, now and then with those that are `saved`.
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
        """The sample without the processes of the run, which are unknown."""
        gpus = (
            replace(gpu, run_used=None, holders=gpu.holders and tuple(replace(h, whose="unknown") for h in gpu.holders))
            for gpu in self.gpus
        )
        return replace(self, run=ProcessesSample(), gpus=tuple(gpus))

    @property
    def room(self) -> int | None:
        """The number of checkpoints of the newest one's size that the disk still has room for."""
        return self.disk.free // self.saved.newest if self.disk and self.saved and self.saved.newest else None

    @property
    def host_load(self) -> HostLoad | None:
        """What used the CPUs of this machine; None if it is not known, or the run has other machines."""
        host, own = self.host, self.run.cores
        if self.nodes or host.load is None or host.cores is None or host.busy is None or own is None:
            return None
        others = max(host.busy - own, 0.0)
        return HostLoad(host.load, host.cores, host.busy, others, host.stolen or 0.0, host.waiting)

    def among(self, cluster: "MachineSample", here: str) -> "MachineSample":
        """This machine, named `here`, joined with its cluster: only its own GPUs show the memory of the run."""
        own = NodeSample(here, self.host.used, self.host.total, self.run.rss)
        nodes = (own, *(node for node in cluster.nodes if node.name != here))
        gpus = [replace(gpu, index=f"{here}/{gpu.index}") for gpu in self.gpus]
        gpus += [gpu for gpu in cluster.gpus if not str(gpu.index).startswith(f"{here}/")]
        return replace(self, host=_tightest(nodes), gpus=tuple(gpus), nodes=nodes)

    @classmethod
    def of_cluster(cls, t: float, summary: Iterable[Any]) -> "MachineSample":
        """The nodes as a Ray dashboard reports them; nodes that are gone or report nothing are left out.

        Ray 2.60: `ray/dashboard/modules/reporter/reporter_agent.py: _async_collect_stats` (memory in bytes) and
        `gpu_providers.py: GpuUtilizationInfo` (memory in MiB, power in mW), their keys in camelCase.
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
        """The sample of a line of gpu.jsonl; None where it is damaged."""
        try:
            return cls.from_json(parse_object(line))
        except ValueError:
            return None


def _tightest(nodes: Iterable[NodeSample]) -> HostSample:
    """The memory of the node with the least free."""
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
