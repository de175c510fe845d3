"""The beginning and the end of an attempt: launch.json and exit.json."""

from dataclasses import dataclass, field
from typing import Any

from launcher.record.json import RARE, Record
from launcher.record.machine import DiskSpace, HostSample

OF_HOST = "/proc/vmstat"


@dataclass(frozen=True, slots=True)
class JobRef(Record):
    """A job of a Ray cluster: the address of the cluster's dashboard, and the job's submission id."""

    address: str
    id: str


@dataclass(frozen=True, slots=True)
class Followed(Record):
    """A log that another program writes: a "console", the "metrics" of veRL's file logger, a file with a row per step
    ("rows"), or files of a "tracker". One with a `speed` is played, so many times faster than it was written.
    """

    path: str
    kind: str
    speed: float | None = field(default=None, metadata=RARE)


@dataclass(frozen=True, slots=True)
class OomKills(Record):
    """Processes that the kernel's out-of-memory killer has ended so far: on the `host` since its start, and in the
    control `group` whose `counter` is this file. None where the kernel shows no number.
    """

    host: int | None = None
    group: int | None = None
    counter: str | None = None

    def since(self, before: "OomKills") -> tuple[int, str] | None:
        """Processes ended since then, and the file that counts them; None where no counter was read twice.

        That of the group comes first, because the host's also counts other programs.
        """
        group = self.group if before.counter == self.counter else None
        for then, now, file in ((before.group, group, self.counter or ""), (before.host, self.host, OF_HOST)):
            if then is not None and now is not None and now >= then:  # the host may have been restarted
                return now - then, file
        return None


@dataclass(frozen=True, slots=True)
class MachineEnd(Record):
    """What the machine showed when an attempt ended: the counters at its start and end, the host's memory when it was
    fullest in the last samples, and the disks of the run and of its checkpoints.
    """

    oom_before: OomKills | None = None
    oom_after: OomKills | None = None
    memory: HostSample | None = None
    disks: tuple[DiskSpace, ...] = ()

    @property
    def oom_killed(self) -> tuple[int, str] | None:
        """Processes that the kernel's out-of-memory killer ended during the attempt, as of `OomKills.since`."""
        before, after = self.oom_before, self.oom_after
        return after.since(before) if before is not None and after is not None else None

    @property
    def full_disk(self) -> DiskSpace | None:
        """The first disk without space."""
        return next((disk for disk in self.disks if disk.full), None)


@dataclass(frozen=True)
class LaunchRecord(Record):
    """The command that the supervisor starts.

    The environment is the supervisor's own, so no secret is stored; `env` is added to it and `unset` removed; `keys`
    are the veRL keys that `argv` sets. An attempt that resumes continues from the checkpoint of `resume_step`. `host`
    is the name of the machine, `gpus` the UUIDs of the GPUs that the driver may use, `oom_kills` its counters at the
    start. With a `job` the driver is a job of a Ray
    cluster: one that was submitted elsewhere has no `argv`. With `follow` there is no driver, only its log.
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
        """The log that may still grow; None for one that is played."""
        return self.follow if self.follow is not None and self.follow.speed is None else None


@dataclass(frozen=True, slots=True)
class Exit(Record):
    """How the driver ended: `code` as a shell shows it (134, not -6), None if unknown. `requested_by` is who requested
    the end, None if nobody did. `machine` is None where nobody looked at it then.
    """

    code: int | None = None
    signal: str | None = None
    requested_by: str | None = None
    t: float | None = None
    machine: MachineEnd | None = field(default=None, metadata=RARE)

    @property
    def state(self) -> str:
        """The resulting state of the run, as far as this record shows."""
        if self.code == 0:
            return "finished"
        if self.requested_by:
            return "stopped"
        return "lost" if self.code is None else "failed"
