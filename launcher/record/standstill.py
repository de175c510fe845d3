"""Why a run hangs, and what was seen of its processes: stall.json and stall-facts.json of an attempt.

The facts are written so that a reason can be judged again, and become the data of tests. startup.json has the work of
the processes in each stage of the start.
"""

from dataclasses import dataclass, field
from typing import Any

from launcher.record.json import RARE, Record


@dataclass(frozen=True, slots=True)
class Standstill(Record):
    """A run hangs for a reason of `launcher.runs.watch.stalls`. Times are unix seconds.

    `since` is when it last moved, `noticed` when that was noticed, in `stage`, which usually takes `usual` seconds
    (None in a stage that it never passed), `until` when it moved again. `command` would show what cannot be seen
    without rights.
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
    """What a thread does, the innermost call first: `file:line function`. `still`: it did the same 3 s before."""

    thread: str
    frames: tuple[str, ...]
    still: bool = True


@dataclass(frozen=True, slots=True)
class Seen(Record):
    """One process of a run. `state` is the kernel's letter, `cpu` the cores that it used or waited for, `tasks` the
    coroutines that wait.

    `collectives` are the operations of its process groups that have not ended, or the last ones: `group`,
    `sequence`, `operation`, `state`, the `ranks` of the group, and `still` where 3 s did not change it.
    `source` is how its stacks were got.
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
    """What the run's Ray waits for, as `ppo_tui_inside.probes.ray_state` prints it; `error`: why that is unknown."""

    actors: tuple[dict[str, Any], ...] = ()
    groups: tuple[dict[str, Any], ...] = ()
    total: dict[str, float] = field(default_factory=dict)
    free: dict[str, float] = field(default_factory=dict)
    nodes: int = 1
    store: tuple[str, ...] = field(default=(), metadata=RARE)
    error: str | None = field(default=None, metadata=RARE)


@dataclass(frozen=True, slots=True)
class HangFacts(Record):
    """All that was seen at `t`, in `stage`.

    `full` are file systems without space, `mounts` those of processes in state D with their types (that of checkpoints
    first, while it saves), `locks` who waits for whom, `kernel` lines about GPUs, `missing` commands that show more.
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
