"""Why a run hangs, with the facts about its processes: stall.json and stall-facts.json of an attempt.

The facts are stored for judging a reason again, and as test data. startup.json has the work of the processes per stage
of the start.
"""

from dataclasses import dataclass, field
from typing import Any

from launcher.record.json import RARE, Record


@dataclass(frozen=True, slots=True)
class Standstill(Record):
    """A run hangs for a reason of `launcher.runs.watch.stalls`. Times are unix seconds.

    `since`: its last progress. `noticed`: the time of detection, in `stage`, which usually takes `usual` seconds (None
    if never passed). `until`: its next progress. `command`: shows facts that need more rights.
    """

    reason: str
    title: str
    since: float
    noticed: float
    stage: str = ""
    usual: float | None = field(default=None, metadata=RARE)
    evidence: tuple[str, ...] = ()
    command: str | None = field(default=None, metadata=RARE)
    until: float | None = field(default=None, metadata=RARE)


@dataclass(frozen=True, slots=True)
class Stack(Record):
    """A thread's calls, innermost first: `file:line function`. `still`: unchanged for 3 s."""

    thread: str
    frames: tuple[str, ...]
    still: bool = True


@dataclass(frozen=True, slots=True)
class Seen(Record):
    """One process of a run. `state`: the kernel's letter. `cpu`: cores used or waited for. `tasks`: waiting coroutines.

    `collectives`: unfinished operations of its process groups, or the last ones: `group`, `sequence`, `operation`,
    `state`, the `ranks` of the group, and `still` if unchanged for 3 s. `source`: origin of its stacks.
    """

    pid: int
    name: str
    state: str = "S"
    cpu: float = 0.0
    ranks: tuple[int, ...] = field(default=(), metadata=RARE)
    wait: str = field(default="", metadata=RARE)
    stacks: tuple[Stack, ...] = field(default=(), metadata=RARE)
    tasks: tuple[tuple[str, ...], ...] = field(default=(), metadata=RARE)
    collectives: tuple[dict[str, Any], ...] = field(default=(), metadata=RARE)
    files: tuple[str, ...] = field(default=(), metadata=RARE)
    source: str = field(default="", metadata=RARE)


@dataclass(frozen=True, slots=True)
class RayView(Record):
    """The waits in the run's Ray, as printed by `ppo_tui_inside.probes.ray_state`; `error`: why they are unknown."""

    actors: tuple[dict[str, Any], ...] = ()
    groups: tuple[dict[str, Any], ...] = ()
    total: dict[str, float] = field(default_factory=dict)
    free: dict[str, float] = field(default_factory=dict)
    nodes: int = 1
    store: tuple[str, ...] = field(default=(), metadata=RARE)
    error: str | None = field(default=None, metadata=RARE)


@dataclass(frozen=True, slots=True)
class HangFacts(Record):
    """All facts at `t`, in `stage`.

    `full`: file systems without space. `mounts`: mounts used by processes in state D, with types (during a save, first
    the checkpoints' mount). `locks`: who waits for whom. `kernel`: lines about GPUs. `missing`: commands that show
    more.
    """

    t: float
    stage: str = ""
    processes: tuple[Seen, ...] = ()
    ray: RayView | None = None
    full: tuple[str, ...] = field(default=(), metadata=RARE)
    mounts: tuple[str, ...] = field(default=(), metadata=RARE)
    locks: tuple[str, ...] = field(default=(), metadata=RARE)
    kernel: tuple[str, ...] = field(default=(), metadata=RARE)
    missing: tuple[str, ...] = field(default=(), metadata=RARE)


@dataclass(frozen=True, slots=True)
class StageWork(Record):
    """Sums over a stage in seconds: CPU time, of compilers, without a free core, without any activity; and bytes.

    `fetched`: from disks (`disk`: mount and type). `downloaded`: from a model hub.
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
    """The stages so far, in order."""

    stages: tuple[StageWork, ...] = ()

    def of(self, stage: str) -> StageWork | None:
        """The work of a stage."""
        return next((work for work in self.stages if work.stage == stage), None)
