"""The turns of the queue: what each run waits for, the GPUs that it will get, and the order on each GPU."""

import contextlib
import dataclasses
import functools
import os
import socket
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from launcher import settings
from launcher.core import paths
from launcher.core.format import counted, gib
from launcher.machine.sampler import Sampler, visible
from launcher.record import queued
from launcher.record.attempt import LaunchRecord
from launcher.record.events import Action, read_kind
from launcher.record.layout import RunDir, all_runs
from launcher.record.queued import Checked, Queued
from launcher.record.state import RunState, current, supervised
from launcher.verl.config import ENGINE_GPUS, GPUS

_RESERVED = "is reserved for"
_ALL = "all"  # GPUs of a machine without a list of its GPUs
_used_at: dict[str, float] = {}  # GPU -> when this process last saw memory of it in use
_RETRY = 300.0  # seconds in which a retry that was announced has begun


@dataclass(frozen=True)
class Turn:
    """The turn of an entry: due if `waits`, the reason in words, is None.

    `gpus`: the GPUs that it will get; `on_cpu`: it will get a CPU place. `lost`: it can never start, for the reason in
    `waits`. `outside`: it waits for an event that no supervisor reports: GPUs used by others, a run that may be
    retried, a supervisor about to end. `check`: its preflight. `unchecked`: the preflight must be made first.
    """

    entry: Queued
    waits: str | None = None
    gpus: tuple[str, ...] = ()
    on_cpu: bool = False
    lost: bool = False
    outside: bool = False
    unchecked: bool = False
    check: Checked = field(default_factory=Checked)

    @property
    def due(self) -> bool:
        return self.waits is None

    @property
    def state(self) -> str:
        """See `Queued.state`."""
        return self.entry.state(self.check)


@dataclass(frozen=True)
class Slot:
    """A GPU, or the CPU places: the runs on it, each with its state, and the ids of the entries that follow, in order.

    `gpu`: its number, None for the CPU. `user`: who else uses the GPU, in words; None if nobody does.
    """

    gpu: str | None
    runs: Mapping[str, RunState]
    next: tuple[str, ...]
    user: str | None = None


@dataclass(frozen=True)
class Ran:
    """A run's state for the queue; `ending`: it has ended, and its supervisor lives or will retry it."""

    state: RunState
    launch: LaunchRecord = field(default_factory=LaunchRecord)
    ending: bool = False


@dataclass(frozen=True)
class Seen:
    """The records that determine the turns. `gpus`: the GPUs available to us, each with its user in words. `named`: the
    GPU for each other name in an entry or run, such as a UUID.
    """

    entries: Sequence[Queued]
    checks: Mapping[str, Checked] = field(default_factory=dict)
    runs: Mapping[str, Ran] = field(default_factory=dict)
    gpus: Mapping[str, str | None] = field(default_factory=dict)
    named: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)
    max_cpu_runs: int = 1
    paused: bool = False


def look(before: Seen | None = None) -> Seen:
    """Reads the queue and its runs; reuses the GPU use measured in an earlier look."""
    entries = queued.entries()
    if not entries:
        return Seen([])
    needs = any(each.needs for each in entries)
    gpus = before.gpus if before else _sampled(visible(os.environ)) if needs else {}
    runs = dict(_runs(entries, with_gpus=bool(gpus)))
    going = [run for run in runs.values() if needs and (run.state.going or run.ending)]
    words = {word for each in entries for word in each.gpus} | {
        word for run in going for word in visible(run.launch.env) or ()
    }
    words |= {uuid for run in going if _in_container(run.state) for uuid in run.launch.gpus}
    named = before.named if before else {word: _sampled([word]) for word in words - gpus.keys()}
    checks = {each.id: queued.checked(each.id) for each in entries}
    return Seen(entries, checks, runs, gpus, named, settings.max_cpu_runs(), queued.paused())


def turns() -> list[Turn]:
    """The queue in order. Without entries nothing else is read."""
    return arrange(look())


def turns_and_slots() -> tuple[list[Turn], list[Slot]]:
    """The queue in order, and the slots that it uses."""
    seen = look()
    queue = arrange(seen)
    return queue, [*slots(seen, queue)]


def arrange(seen: Seen) -> list[Turn]:
    """The queue in order. Entries that are being started keep their GPUs, at any position."""
    machine = _Machine(seen)
    starting = {each.id: machine.place(each, starting=True) for each in seen.entries if each.starting}
    places = [starting.get(each.id) or _turn(each, seen, machine) for each in seen.entries]
    return [dataclasses.replace(turn, check=seen.checks[turn.entry.id]) for turn in places]


def slots(seen: Seen, queue: Sequence[Turn]) -> Iterator[Slot]:
    """Every GPU that NVML reports, and the CPU places if an entry needs one."""
    machine = _Machine(seen)
    queue = sorted(queue, key=lambda turn: not turn.entry.starting)  # those have their slots at any position
    for gpu, user in seen.gpus.items():
        held = machine.held.get(_ALL) or machine.held.get(gpu)
        follow = tuple(turn.entry.id for turn in queue if gpu in machine.numbered(turn.gpus))
        yield Slot(gpu, _states(seen, [held.run] if held else []), follow, None if held else user)
    if not all(turn.entry.needs for turn in queue):
        yield Slot(None, _states(seen, machine.on_cpu), tuple(turn.entry.id for turn in queue if turn.on_cpu))


def _states(seen: Seen, runs: Iterable[str]) -> dict[str, RunState]:
    return {run: seen.runs[run].state for run in runs}


def _turn(entry: Queued, seen: Seen, machine: "_Machine") -> Turn:
    """The turn of an entry that is not being started."""
    check = seen.checks[entry.id]
    if entry.skipped is not None:
        return Turn(entry, entry.skipped)
    if entry.paused or seen.paused:
        return Turn(entry, "paused" if entry.paused else "the queue is paused")
    if entry.host != socket.gethostname():
        gone = f"if that host is gone: 'ppo-tui queue resume {entry.id}'"
        return Turn(entry, f"runs on host {entry.host} only, where it was queued; {gone}")
    if check.refused is not None:
        return Turn(entry, check.refused, lost=True)
    if not check.ended:  # reserves nothing: others may be ready
        return Turn(entry, f"its preflight{'' if check.running else ', which has not begun'}", unchecked=True)
    return _after(entry, seen) or machine.place(entry)


def free_gpus(devices: Sequence[str] | None) -> list[str]:
    """The unused GPUs among `devices`, as in CUDA_VISIBLE_DEVICES."""
    return [gpu for gpu, user in _sampled(devices).items() if user is None]


def _after(entry: Queued, seen: Seen) -> Turn | None:
    """The turn of an entry that waits for another run; None after that has finished."""
    if entry.after is None or entry.now:
        return None
    if earlier := next((each for each in seen.entries if each.id == entry.after), None):
        return Turn(entry, f"after {earlier.id}, which {'was skipped' if earlier.skipped else 'has not started'}")
    if (run := seen.runs.get(entry.after)) is None:
        return Turn(entry, f"run {entry.after}, which had to finish first, was deleted", lost=True)
    state = run.state
    if state.going:
        return Turn(entry, f"after {entry.after}, which is {state.state}")
    if state.state == "failed" and run.ending:
        return Turn(entry, f"waits for {entry.after} ({state.state}, may be retried)", outside=True)
    if state.state != "finished":
        return Turn(entry, f"run {entry.after}, which had to finish first, is {state.state}", lost=True)
    return None


def _runs(entries: Sequence[Queued], with_gpus: bool) -> Iterator[tuple[str, Ran]]:
    """Every run, and the runs that entries wait for; launches of ended ones only if entries use GPUs."""
    named = (RunDir(paths.runs_dir() / each.after) for each in entries if each.after)
    for run in {run.id: run for run in (*all_runs(), *(run for run in named if run.path.exists()))}.values():
        state = current(run, checks=False)
        ending = not state.going and _ending(run, state)
        launch = LaunchRecord()
        if state.attempt is not None and (state.going or ending):
            launch = run.attempt(state.attempt).read_launch()
        elif state.attempt is not None and with_gpus:
            launch = _launch_of(str(run.path), state.attempt)
        yield run.id, Ran(state, launch, ending)


def _ending(run: RunDir, state: RunState) -> bool:
    """Whether an ended run still has its GPUs: its supervisor lives, and may retry it or already did."""
    if supervised(run, state):
        return True
    with contextlib.suppress(OSError):
        if state.state == "failed" and abs(time.time() - run.events.stat().st_mtime) < _RETRY:
            verbs = [action.verb for action in read_kind(run.events, Action) if action.verb in ("retry", "resume")]
            return verbs[-1:] == ["retry"]
    return False


class _Held(NamedTuple):
    """The use of a GPU by a run, or by an entry that will get it."""

    run: str
    how: str = "is used by"

    def __str__(self) -> str:
        return f"{self.how} {self.run}"


class _Machine:
    """GPUs and CPU places, which entries take in turn.

    `outside`: other users of a GPU, in words. A waiting entry keeps the free GPUs that it will use, so that smaller
    entries do not overtake it forever.
    """

    def __init__(self, seen: Seen) -> None:
        self.gpus, self.max_cpu_runs = seen.gpus, seen.max_cpu_runs
        self.outside = {**seen.gpus, **{word: who for word, gpu in seen.named.items() for who in gpu.values()}}
        self.numbers = {word: number for word, gpu in seen.named.items() for number in gpu}
        self.named = {number for each in seen.entries for number in self.numbered(each.gpus)}
        self.held: dict[str, _Held] = {}
        self.freed: dict[str, float] = {}  # device -> when its last run ended
        self.on_cpu: list[str] = []
        self.ending = False  # a run is ending, or is about to be retried
        for id, run in seen.runs.items():
            if run.state.attempt is None:
                continue
            if run.state.going or run.ending:
                if _in_container(run.state):
                    self._hold_of_container(id, run.launch)
                else:
                    self._hold(id, run.launch)
                self.ending |= run.ending
            elif self.gpus:
                for device in self._devices(run.launch):
                    self.freed[device] = max(self.freed.get(device, 0.0), run.state.updated or 0.0)

    def _hold(self, run: str, launch: LaunchRecord) -> None:
        if _elsewhere(launch):
            return
        if launch.keys.get("trainer.device") == "cpu":
            self.on_cpu.append(run)
        self.held |= dict.fromkeys(self._devices(launch), _Held(run))

    def _hold_of_container(self, run: str, launch: LaunchRecord) -> None:
        """Holds the GPUs of a run in another container, where they may have other indices."""
        self.held |= dict.fromkeys(self.numbered(launch.gpus[: _count(launch)]), _Held(run))

    def _devices(self, launch: LaunchRecord) -> list[str]:
        """The GPUs of a run on this machine."""
        if _elsewhere(launch) or launch.keys.get("trainer.device") == "cpu":
            return []
        if count := _count(launch):
            # Ray takes the first ones of those that it sees
            named = visible(launch.env)
            return self.numbered(named[:count]) if named is not None else [*self.gpus][:count] or [_ALL]
        return []

    def place(self, entry: Queued, *, starting: bool = False) -> Turn:
        """The turn of an entry; later ones do not get its GPUs. One that is being started keeps its GPUs."""
        if starting:
            devices = (entry.gpus or entry.given or (_ALL,)) if entry.needs else ()
            self.held |= dict.fromkeys(self.numbered(devices), _Held(entry.id, _RESERVED))
            self.on_cpu += [] if entry.needs or entry.id in self.on_cpu else [entry.id]
            return Turn(entry, "its start", tuple(each for each in devices if each != _ALL), on_cpu=not entry.needs)
        if not entry.needs:
            others = self.on_cpu[: self.max_cpu_runs]
            if len(others) < self.max_cpu_runs or entry.now:
                self.on_cpu.append(entry.id)
                return Turn(entry, on_cpu=True)
            return Turn(entry, f"CPU: used by {', '.join(others)}", on_cpu=True, outside=self.ending)
        wanted = entry.gpus or (() if self.gpus else (_ALL,))
        if wanted:
            blocked = [(each, self._taken(each)) for each in wanted if self._taken(each)]
            chosen = wanted
        else:
            taken = [each for each in self.gpus if self._taken(each)]
            free = sorted((each for each in self.gpus if each not in taken), key=self._rank)
            # of more than there are the preflight reports
            waits = len(free) < min(entry.needs, len(self.gpus)) and not entry.now
            chosen = tuple(free[: entry.needs] if waits else [*free, *taken][: entry.needs])
            blocked = [(each, self._taken(each)) for each in taken] if waits else []
        outside = self.ending or any(each not in self.held and self.outside.get(each) for each, _ in blocked)
        for each in self.numbered(chosen):
            self.held.setdefault(each, _Held(entry.id, _RESERVED))
        gpus = tuple(each for each in chosen if each != _ALL)
        if entry.now or not blocked:
            return Turn(entry, None, gpus)
        count = "" if entry.gpus else f"{counted(entry.needs, 'GPU')}; "
        words = ", ".join(f"GPU {each} {who}" if each != _ALL else f"the machine {who}" for each, who in blocked)
        return Turn(entry, count + words, gpus, outside=outside)

    def numbered(self, words: Iterable[str]) -> list[str]:
        """GPUs by one name each."""
        return [self.numbers.get(word, word) for word in words]

    def _rank(self, device: str) -> tuple[bool, float]:
        """The order of free GPUs: first GPUs that no entry names, then the longest free."""
        return device in self.named, max(self.freed.get(device, 0.0), _used_at.get(device, 0.0))

    def _taken(self, device: str) -> str | None:
        """The user of a GPU, in words; None if free."""
        holder = self.held.get(_ALL) or self.held.get(self.numbers.get(device, device))
        if holder is None and device == _ALL:
            holder = next(iter(self.held.values()), None)
        return str(holder) if holder else self.outside.get(device)


@functools.lru_cache(1024)
def _launch_of(run: str, attempt: int) -> LaunchRecord:
    """The launch record of an ended attempt."""
    return RunDir(Path(run)).attempt(attempt).read_launch()


def _count(launch: LaunchRecord) -> int:
    """The number of GPUs of a run; 0 for the replay of a log."""
    counts = launch.keys.get(GPUS), launch.keys.get(ENGINE_GPUS)
    return sum(count for count in counts if isinstance(count, int)) if isinstance(counts[0], int) else 0


def _in_container(state: RunState) -> bool:
    """Whether a run is in another container of this machine."""
    return state.supervisor is not None and state.supervisor.this_boot and not state.supervisor.here


def _elsewhere(launch: LaunchRecord) -> bool:
    """Whether a run uses other machines."""
    return launch.job is not None or launch.host not in (None, socket.gethostname())


def _sampled(devices: Sequence[str] | None) -> dict[str, str | None]:
    """GPUs with their users in words, as far as NVML reports them; without MIG slices, which CUDA does not number."""
    sampler = Sampler(devices)
    try:
        gpus = sampler.sample().gpus
    finally:
        sampler.close()
    _used_at.update((str(gpu.index), time.time()) for gpu in gpus if gpu.in_use)
    return {
        str(gpu.index): f"has {gib(gpu.used or 0)} GiB in use" if gpu.in_use else None
        for gpu in gpus
        if isinstance(gpu.index, int) or devices
    }
