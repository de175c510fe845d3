"""startup.json of an attempt: the work of its processes in each stage of the start."""

from dataclasses import dataclass, field

from launcher.record.json import RARE, Record


@dataclass(frozen=True, slots=True)
class StageWork(Record):
    """Sums over a stage: seconds of CPU time, of compilers, without a free core, and without any activity; and bytes.

    `fetched` are from disks (`disk` names mount and type), `downloaded` from a model hub.
    """

    stage: str
    seconds: float = 0.0
    cpu: float = 0.0
    compiled: float = field(default=0.0, metadata=RARE)
    starved: float = field(default=0.0, metadata=RARE)
    quiet: float = field(default=0.0, metadata=RARE)
    fetched: int = field(default=0, metadata=RARE)
    downloaded: int = field(default=0, metadata=RARE)
    disk: str = field(default="", metadata=RARE)


@dataclass(frozen=True, slots=True)
class StartupWork(Record):
    """The stages so far, in their order."""

    stages: tuple[StageWork, ...] = ()

    def of(self, stage: str) -> StageWork | None:
        """The work of a stage."""
        return next((work for work in self.stages if work.stage == stage), None)
