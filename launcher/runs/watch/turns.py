"""The turns of the queue: what each run waits for, and the GPUs that it would get."""

import contextlib
import dataclasses
import functools
import os
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from launcher import settings
from launcher.core import paths
from launcher.core.format import counted, gib
from launcher.machine.sampler import Sampler, visible
from launcher.record import queued
from launcher.record.attempt import LaunchRecord
from launcher.record.events import Action, read_kind
from launcher.record.layout import RunDir, all_runs
from launcher.record.queued import Checked, Queued
from launcher.record.state import RunState, current
from launcher.verl.config import ENGINE_GPUS, GPUS

_ALL = "all"  # GPUs of a machine that does not tell which it has
_used_at: dict[str, float] = {}  # GPU -> when this process last saw memory of it in use
_RETRY = 300.0  # seconds in which a retry that was announced has begun


@dataclass(frozen=True)
class Turn:
    """The turn of an entry: it is due if `waits`, the reason in words, is None.

    `gpus` are those that it would get. `lost`: it can never start, for the reason in `waits`. `outside`: it waits for
    something that no supervisor reports: GPUs that others use, a run that may be retried, the last moments of a
    supervisor. `check` is its preflight; `unchecked`: that has to be made first.
    """

    entry: Queued
    waits: str | None = None
    gpus: tuple[str, ...] = ()
    lost: bool = False
    outside: bool = False
    unchecked: bool = False
    check: Checked = field(default_factory=Checked)

    @property
    def due(self) -> bool:
        return self.waits is None

    @property
    def state(self) -> str:
        """refused (by the preflight), skipped, paused, starting, checking, queued (not checked yet) or checked."""
        entry = self.entry
        if entry.skipped is not None:
            return "refused" if self.check.refused else "skipped"
        if entry.paused or entry.starting:
            return "paused" if entry.paused else "starting"
        return "checking" if self.check.running else "checked" if self.check.ended else "queued"


def turns() -> list[Turn]:
    """The queue in its order. Without entries nothing else is read."""
    entries = queued.entries()
    if not entries:
        return []
    stopped, machine = queued.paused(), _Machine(entries)
    places = []
    for entry in entries:
        check = queued.checked(entry.id)
        if entry.skipped is not None:
            turn = Turn(entry, entry.skipped)
        elif entry.paused or stopped:
            turn = Turn(entry, "paused" if entry.paused else "the queue is paused")
        elif entry.host != socket.gethostname():
            turn = Turn(entry, f"waits for host {entry.host}, which added it")
        elif entry.starting:
            turn = dataclasses.replace(machine.place(entry), waits="its start")
        elif check.refused is not None:
            turn = Turn(entry, check.refused, lost=True)
        elif not check.ended:  # it reserves nothing: others may be ready
            turn = Turn(entry, f"its preflight{'' if check.running else ', which has not begun'}", unchecked=True)
        else:
            turn = _after(entry, entries) or machine.place(entry)
        places.append(dataclasses.replace(turn, check=check))
    return places


def free_gpus(devices: Sequence[str] | None) -> list[str]:
    """The GPUs of this machine that nobody uses, of `devices` as CUDA_VISIBLE_DEVICES names them."""
    return [gpu for gpu, user in _sampled(devices).items() if user is None]


def _after(entry: Queued, entries: Sequence[Queued]) -> Turn | None:
    """The turn of an entry that waits for another run; None if that has finished."""
    if entry.after is None or entry.now:
        return None
    if earlier := next((each for each in entries if each.id == entry.after), None):
        return Turn(entry, f"after {earlier.id}, which {'was skipped' if earlier.skipped else 'has not started'}")
    run = RunDir(paths.runs_dir() / entry.after)
    if not run.path.exists():
        return Turn(entry, f"run {entry.after}, which had to finish first, was deleted", lost=True)
    state = current(run, checks=False)
    if state.going:
        return Turn(entry, f"after {run.id}, which is {state.state}")
    if state.state == "failed" and _ending(run, state):
        return Turn(entry, f"waits for {run.id} ({state.state}, may be retried)", outside=True)
    if state.state != "finished":
        return Turn(entry, f"run {run.id}, which had to finish first, is {state.state}", lost=True)
    return None


def _ending(run: RunDir, state: RunState) -> bool:
    """Whether an ended run still has its GPUs: its supervisor lives, which may retry it or has done so."""
    if state.supervisor is not None and state.supervisor.alive():
        return True
    with contextlib.suppress(OSError):
        if state.state == "failed" and abs(time.time() - run.events.stat().st_mtime) < _RETRY:
            verbs = [action.verb for action in read_kind(run.events, Action) if action.verb in ("retry", "resume")]
            return verbs[-1:] == ["retry"]
    return False


class _Machine:
    """The GPUs and CPU places that entries take in turn.

    `outside` has, in words, who else uses a GPU. A waiting entry keeps the free GPUs that it would use, so that smaller
    ones do not overtake it forever.
    """

    def __init__(self, entries: Sequence[Queued]) -> None:
        self.gpus = _sampled(visible(os.environ)) if any(each.needs for each in entries) else {}
        self.named = {word for each in entries for word in each.gpus}
        more = self.named - self.gpus.keys()  # UUIDs, and those that are hidden from us
        self.outside = self.gpus | {word: who for word in more for who in _sampled([word]).values()}
        self.held: dict[str, str] = {}  # device -> words about the run that has it
        self.freed: dict[str, float] = {}  # device -> when its last run ended
        self.on_cpu: list[str] = []
        self.max_cpu_runs = settings.max_cpu_runs()
        self.ending = False  # a run is ending, or is about to be retried
        for run in all_runs():
            state = current(run, checks=False)
            ending = not state.going and _ending(run, state)
            if state.attempt is None:
                continue
            if state.going or ending:
                self._hold(run.id, run.attempt(state.attempt).read_launch())
                self.ending |= ending
            elif self.gpus:
                for device in self._devices(_launch_of(str(run.path), state.attempt)):
                    self.freed[device] = max(self.freed.get(device, 0.0), state.updated or 0.0)

    def _hold(self, run: str, launch: LaunchRecord) -> None:
        if _elsewhere(launch):
            return
        if launch.keys.get("trainer.device") == "cpu":
            self.on_cpu.append(run)
        self.held |= dict.fromkeys(self._devices(launch), f"is used by {run}")

    def _devices(self, launch: LaunchRecord) -> list[str]:
        """The GPUs of a run on this machine."""
        if _elsewhere(launch) or launch.keys.get("trainer.device") == "cpu":
            return []
        count, engine = launch.keys.get(GPUS), launch.keys.get(ENGINE_GPUS)
        if isinstance(count, int):  # the replay of a log has none
            count += engine if isinstance(engine, int) else 0
            # Ray takes the first ones of those that it sees
            named = visible(launch.env)
            return named[:count] if named is not None else [*self.gpus][:count] or [_ALL]
        return []

    def place(self, entry: Queued) -> Turn:
        """The turn of an entry; the GPUs that it uses are taken from later ones."""
        if not entry.needs:
            others = self.on_cpu[: self.max_cpu_runs]
            if len(others) < self.max_cpu_runs or entry.now:
                self.on_cpu.append(entry.id)
                return Turn(entry)
            return Turn(entry, f"CPU: used by {', '.join(others)}", outside=self.ending)
        wanted = entry.gpus or (entry.given if entry.starting else ()) or (() if self.gpus else (_ALL,))
        if wanted:
            blocked = [(each, self._taken(each)) for each in wanted if self._taken(each)]
            chosen = wanted
        else:
            taken = [each for each in self.gpus if self._taken(each)]
            free = sorted((each for each in self.gpus if each not in taken), key=self._rank)
            # of more than there are the preflight tells
            waits = len(free) < entry.needs <= len(self.gpus) and not entry.now
            chosen = tuple(free[: entry.needs] if waits else [*free, *taken][: entry.needs])
            blocked = [(each, self._taken(each)) for each in taken] if waits else []
        outside = self.ending or any(each not in self.held and self.outside.get(each) for each, _ in blocked)
        for each in chosen:
            self.held.setdefault(each, f"is reserved for {entry.id}")
        gpus = tuple(each for each in chosen if each != _ALL)
        if entry.now or not blocked:
            return Turn(entry, None, gpus)
        count = "" if entry.gpus else f"{counted(entry.needs, 'GPU')}; "
        words = ", ".join(f"GPU {each} {who}" if each != _ALL else f"the machine {who}" for each, who in blocked)
        return Turn(entry, count + words, gpus, outside=outside)

    def _rank(self, device: str) -> tuple[bool, float]:
        """The order of free GPUs: those that no entry names first, then the one that is free for longest."""
        return device in self.named, max(self.freed.get(device, 0.0), _used_at.get(device, 0.0))

    def _taken(self, device: str) -> str | None:
        """Who has a GPU, in words; None when it is free."""
        holder = self.held.get(_ALL) or self.held.get(device)
        if holder is None and device == _ALL:
            holder = next(iter(self.held.values()), None)
        return holder or self.outside.get(device)


@functools.lru_cache(1024)
def _launch_of(run: str, attempt: int) -> LaunchRecord:
    """The launch of an ended attempt."""
    return RunDir(Path(run)).attempt(attempt).read_launch()


def _elsewhere(launch: LaunchRecord) -> bool:
    """Whether a run uses other machines."""
    return launch.job is not None or launch.host not in (None, socket.gethostname())


def _sampled(devices: Sequence[str] | None) -> dict[str, str | None]:
    """GPUs, each with its user in words, as far as NVML reports; no MIG slices, for which CUDA takes no number."""
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
