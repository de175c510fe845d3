"""The beginning and the end of an attempt: launch.json and exit.json."""

from dataclasses import dataclass, field
from typing import Any

from launcher.record.json import RARE, Record


@dataclass(frozen=True, slots=True)
class JobRef(Record):
    """A job of a Ray cluster: the address of the cluster's dashboard, and the job's submission id."""

    address: str
    id: str


@dataclass(frozen=True)
class LaunchRecord(Record):
    """The command that the supervisor starts.

    The environment is the supervisor's own, so no secret is stored; `env` is added to it and `unset` removed; `keys`
    are the veRL keys that `argv` sets. An attempt that resumes continues from the checkpoint of `resume_step`. `host`
    is the name of the machine. With a `job` the driver is a job of a Ray cluster: one that was submitted elsewhere has
    no `argv`.
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
    job: JobRef | None = field(default=None, metadata=RARE)


@dataclass(frozen=True, slots=True)
class Exit(Record):
    """How the driver ended: `code` as a shell shows it (134, not -6), None if unknown. `requested_by` is who requested
    the end, None if nobody did.
    """

    code: int | None = None
    signal: str | None = None
    requested_by: str | None = None
    t: float | None = None

    @property
    def state(self) -> str:
        """The resulting state of the run, as far as this record shows."""
        if self.code == 0:
            return "finished"
        if self.requested_by:
            return "stopped"
        return "lost" if self.code is None else "failed"
