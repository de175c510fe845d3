"""The start and end of an attempt: launch.json and exit.json."""

from dataclasses import dataclass, field
from typing import Any

from launcher.record.json import RARE, Record
from launcher.record.machine import DiskSpace, HostSample

OF_HOST = "/proc/vmstat"


@dataclass(frozen=True, slots=True)
class JobRef(Record):
    """A job of a Ray cluster: the dashboard's address and the job's submission id."""

    address: str
    id: str


@dataclass(frozen=True, slots=True)
class Followed(Record):
    """A log of another program: a "console", the "metrics" of veRL's file logger, a file with a row per step ("rows"),
    or files of a "tracker". With a `speed` it is played, faster than written by this factor, and waits for a key after
    the steps `waits`.
    """

    path: str
    kind: str
    speed: float | None = field(default=None, metadata=RARE)
    waits: tuple[int, ...] = field(default=(), metadata=RARE)


@dataclass(frozen=True, slots=True)
class OomKills(Record):
    """Processes ended so far by the kernel's out-of-memory killer: on the `host` since its boot, and in the control
    `group` whose `counter` is this file. None without a count.
    """

    host: int | None = None
    group: int | None = None
    counter: str | None = None

    def since(self, before: "OomKills") -> tuple[int, str] | None:
        """Processes ended since then, and the counting file; None if no counter was read twice.

        The group's counter comes first, because the host's includes other programs.
        """
        group = self.group if before.counter == self.counter else None
        for then, now, file in ((before.group, group, self.counter or ""), (before.host, self.host, OF_HOST)):
            if then is not None and now is not None and now >= then:  # the host may have been restarted
                return now - then, file
        return None


@dataclass(frozen=True, slots=True)
class MachineEnd(Record):
    """The machine at the end of an attempt: counters at start and end, the host's recent memory peak, and the disks of
    the run and its checkpoints.
    """

    oom_before: OomKills | None = None
    oom_after: OomKills | None = None
    memory: HostSample | None = None
    disks: tuple[DiskSpace, ...] = ()

    @property
    def oom_killed(self) -> tuple[int, str] | None:
        """Processes that the kernel's out-of-memory killer ended during the attempt, as in `OomKills.since`."""
        before, after = self.oom_before, self.oom_after
        return after.since(before) if before is not None and after is not None else None

    @property
    def full_disk(self) -> DiskSpace | None:
        """The first disk without space."""
        return next((disk for disk in self.disks if disk.full), None)


@dataclass(frozen=True)
class LaunchRecord(Record):
    """The command that the supervisor starts.

    The environment is the supervisor's own, so no secret is stored: `env` is added, `unset` removed. `keys`: veRL keys
    set by `argv`. A resuming attempt continues from the checkpoint of `resume_step`. `host`: name of the machine.
    `gpus`: UUIDs of the available GPUs. `oom_kills`: the counters at the start. `job`: the driver is a job of a Ray
    cluster; one submitted elsewhere has no `argv`. `follow`: there is no driver, only its log.
    """

    argv: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    unset: tuple[str, ...] = ()
    keys: dict[str, Any] = field(default_factory=dict)
    cwd: str = "."
    created: float | None = None
    run_created: float | None = None
    resume_step: int | None = None
    host: str | None = None
    gpus: tuple[str, ...] = field(default=(), metadata=RARE)
    job: JobRef | None = field(default=None, metadata=RARE)
    follow: Followed | None = field(default=None, metadata=RARE)
    oom_kills: OomKills | None = field(default=None, metadata=RARE)

    @property
    def followed(self) -> Followed | None:
        """The log that may still grow; None for a played one."""
        return self.follow if self.follow is not None and self.follow.speed is None else None


@dataclass(frozen=True, slots=True)
class Exit(Record):
    """How the driver ended: `code` as in a shell (134, not -6), None if unknown. `requested_by`: who requested the end,
    None if nobody. `machine`: None if not sampled then.
    """

    code: int | None = None
    signal: str | None = None
    requested_by: str | None = None
    t: float | None = None
    machine: MachineEnd | None = field(default=None, metadata=RARE)

    @property
    def state(self) -> str:
        """The resulting state of the run, as far as this record shows it."""
        if self.code == 0:
            return "finished"
        if self.requested_by:
            return "stopped"
        return "lost" if self.code is None else "failed"
