"""Samples of the machine beside a run, one line of gpu.jsonl each: memory, utilisation, power, heat."""

from dataclasses import dataclass, field

from launcher.metrics.records import parse_object
from launcher.record.json import RARE, Record


@dataclass(frozen=True, slots=True)
class Holder(Record):
    """A process that holds memory of a GPU: `used` bytes, None when the driver does not tell.

    `whose` is run, others or unknown, which is without name and user.
    """

    pid: int
    whose: str = "unknown"
    name: str | None = None
    user: str | None = None
    used: int | None = None


@dataclass(frozen=True, slots=True)
class GpuSample(Record):
    """One GPU, or one MIG slice (`0:1`): bytes, per cent, watts, °C; None where NVML does not tell.

    `run_used` are the bytes of the run itself, `slowed` why the clocks are lower than they could be. What
    seldom changes (`reserved` bytes of the driver, limits, `holders`) is not in every sample.
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
    def in_use(self) -> bool:
        """Whether programs hold a good part of it, more than the driver's share or a desktop."""
        return bool(self.used and self.total) and (self.used or 0) * 20 > (self.total or 0)


@dataclass(frozen=True, slots=True)
class HostSample(Record):
    """Bytes of the machine's memory, or of the container's."""

    used: int | None = None
    total: int | None = None


@dataclass(frozen=True, slots=True)
class ProcessesSample(Record):
    """Bytes that the run's processes hold and share with nobody."""

    rss: int | None = None


@dataclass(frozen=True, slots=True)
class MachineSample(Record):
    """The machine at `t`, in unix seconds. `missing` says now and then why there are no GPU figures."""

    t: float
    host: HostSample = HostSample()
    run: ProcessesSample = ProcessesSample()
    gpus: tuple[GpuSample, ...] = ()
    missing: str | None = field(default=None, metadata=RARE)

    @classmethod
    def from_line(cls, line: bytes) -> "MachineSample | None":
        """The sample of a line of gpu.jsonl; None where it is damaged."""
        try:
            return cls.from_json(parse_object(line))
        except ValueError:
            return None
