"""The queue: runs that wait for their turn, one file per run, `queue/ID.json`.

ID is the id of the future run. An entry with an existing run has been started, even if its file remains, so that a kill
never starts a run twice. `queue/checks/ID.json` is its preflight, which runs while it waits.

Every change rereads the entry and writes at most one entry, under the lock `queue/.lock`: no concurrent change is lost,
no removed entry reappears, and a kill leaves the old or the new queue.
"""

import contextlib
import dataclasses
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from launcher.core import paths
from launcher.core.errors import UserError
from launcher.core.files import foreign, make_folder, refuse_changes
from launcher.core.format import counted
from launcher.core.text import near_hint
from launcher.record.info import Origin
from launcher.record.json import RARE, Record
from launcher.record.layout import RunDir, matching
from launcher.record.process import ProcessId, is_locked, locked

_PAUSED = ".paused"  # exists in the folder while the whole queue is paused
_ours = False  # whether this process may start queued runs
_PATIENCE = 30.0  # seconds; a change takes as long as one fsync
_thread = threading.local()  # `changing`: it has the lock


@dataclass(frozen=True)
class Queued(Record):
    """A run that waits for its turn on the machine `host`.

    `name`, `preset_name`: the future run's. `preset`: a snapshot with all settings applied; `settings`: the settings
    given with it, for display. `needs`: number of GPUs, 0 on the CPU. `gpus`: requested ones (CUDA_VISIBLE_DEVICES),
    empty for any. `after`: the run that must finish first. `place`: the starting order. `now`: start even if its GPUs
    are in use. `skipped`: why it could not start. `starter`: the process that starts it on the GPUs `given`. `note`:
    the future note. `origin`: run and checkpoint of a fork.
    """

    id: str
    name: str
    preset: dict[str, Any]
    host: str
    needs: int
    place: float
    added: float
    settings: tuple[str, ...] = ()
    gpus: tuple[str, ...] = ()
    note: str = field(default="", metadata=RARE)
    origin: Origin | None = field(default=None, metadata=RARE)
    after: str | None = field(default=None, metadata=RARE)
    force: bool = field(default=False, metadata=RARE)
    paused: bool = field(default=False, metadata=RARE)
    now: bool = field(default=False, metadata=RARE)
    skipped: str | None = field(default=None, metadata=RARE)
    starter: ProcessId | None = field(default=None, metadata=RARE)
    given: tuple[str, ...] = field(default=(), metadata=RARE)
    preset_name: str | None = field(default=None, metadata=RARE)

    @property
    def of_preset(self) -> str:
        """The preset's name."""
        return self.preset_name or self.name

    @property
    def run(self) -> RunDir:
        """The future run."""
        return RunDir(paths.runs_dir() / self.id)

    @property
    def uses(self) -> str:
        """`CPU`, `2 GPUs`, `GPU 0,1`."""
        if self.gpus:
            return f"GPU {','.join(self.gpus)}"
        return f"{counted(self.needs, 'GPU')}" if self.needs else "CPU"

    @property
    def starting(self) -> bool:
        """Whether it is being started."""
        return _works(self.starter)

    @property
    def waits(self) -> bool:
        """Whether it will start as soon as possible."""
        return not self.paused and self.skipped is None

    def state(self, check: "Checked") -> str:
        """refused (by the preflight), skipped, paused, starting, checking, queued (not checked yet) or checked."""
        if self.skipped is not None:
            return "refused" if check.refused else "skipped"
        if self.paused or self.starting:
            return "starting" if self.starting else "paused"
        return "checking" if check.running else "checked" if check.ended else "queued"

    @property
    def word(self) -> str:
        """Its state for people: `queued` while it waits, checked or not."""
        state = self.state(checked(self.id))
        return "queued" if state == "checked" else state

    def save(self) -> None:
        """Adds it at its place. Raises OSError."""
        with changing():
            self.write(_file(self.id))

    def remove(self) -> None:
        """Removes it from the queue. Raises UserError if it is being started or has left the queue, OSError."""
        with changing():
            if _present(self).starting:
                raise UserError(f"run {self.id} is being started", f"stop it with 'ppo-tui stop {self.id}'")
            _remove(self.id)


@dataclass(frozen=True)
class Checked(Record):
    """The preflight of a waiting run, made by the process `checker`; `ended`: time of completion, 0 before.

    `tries`: number of processes started for it. `refused`: why the run would fail. `findings`: those independent of the
    current load of the machine. `files`: stamps of the files that were read, by `check.gate.stamps`.
    """

    tries: int = 0
    ended: float = 0.0
    checker: ProcessId | None = field(default=None, metadata=RARE)
    refused: str | None = field(default=None, metadata=RARE)
    findings: tuple[dict[str, Any], ...] = ()
    files: dict[str, Any] = field(default_factory=dict)

    @property
    def running(self) -> bool:
        """Whether the preflight is running."""
        return not self.ended and _works(self.checker)

    def save(self, id: str) -> None:
        """Writes its file, unless the entry has left the queue. Raises OSError."""
        with changing():
            if (file := _file(id)).exists():
                make_folder((file := _checked(id)).parent)
                self.write(file)


def checked(id: str) -> Checked:
    """The preflight of an entry; an empty record without one."""
    return (None if foreign(_checked(id)) else Checked.read(_checked(id))) or Checked()


def refused() -> list[UserError]:
    """Why queue files are not used: other users own or may write them or their folder."""
    files = (path for each in ("*.json", _PAUSED, "checks/*.json") for path in sorted(paths.queue_dir().glob(each)))
    return list(filter(None, map(foreign, files)))


def entries() -> list[Queued]:
    """The waiting runs in order, without damaged files. Removes a started entry's file, so that it stays away."""
    known = _read()
    for each in (started := [each for each in known if each.run.path.exists()]):
        with contextlib.suppress(OSError):  # a later look removes it if this one cannot
            leave(each, 0.0)
    return [each for each in known if each not in started]


def get(id: str) -> Queued | None:
    """The entry with this id; None if started or removed."""
    entry = None if foreign(_file(id)) else Queued.read(_file(id))
    return entry if entry is not None and entry.id == id else None


def find(word: str) -> Queued:
    """Finds an entry by its id, a unique prefix, or a unique name. Raises UserError."""
    known = {each.id: each for each in entries()}
    found = word if word in known else matching(word, {id: each.name for id, each in known.items()})
    if found is not None:
        return known[found]
    listed = "'ppo-tui queue' lists its runs"
    raise UserError(f"no run '{word}' in the queue", near_hint(word, known, listed))


def append(entry: Queued) -> Queued:
    """Adds an entry at the end; returns it with its place. Raises OSError."""
    with changing():
        last = dataclasses.replace(entry, place=new_place())
        last.write(_file(entry.id))
    return last


def move(entry: Queued, distance: int = 0, *, to: int | None = None) -> tuple[int, int]:
    """Moves an entry by `distance` places towards the end, or `to` a place (from 0); the others keep their order.

    Returns its new place and the number of entries. Raises UserError if it has left the queue, OSError.
    """
    with changing():
        now, known = _present(entry), _read()
        at = min(max(known.index(now) + distance if to is None else to, 0), len(known) - 1)
        dataclasses.replace(now, place=_place_at(at, now, known)).write(_file(now.id))
    return at, len(known)


def change(entry: Queued, *, recheck: bool = False, **values: Any) -> None:
    """Replaces fields of an entry. Repeats its preflight with `recheck`, and if it is no longer skipped.

    Raises UserError if it has left the queue, OSError.
    """
    with changing():
        now = _present(entry)
        changed = dataclasses.replace(now, **values)
        changed.write(_file(entry.id))
        if recheck or (now.skipped is not None and changed.skipped is None):
            _checked(entry.id).unlink(missing_ok=True)


def decide(entry: Queued, **values: Any) -> bool:
    """Replaces fields of an entry if neither it nor the pause changed since; returns whether it did. Raises OSError."""
    with changing():
        if same := get(entry.id) == entry and not paused():
            dataclasses.replace(entry, **values).write(_file(entry.id))
    return same


def leave(entry: Queued, patience: float = _PATIENCE) -> None:
    """Removes the file of a started entry. Raises OSError, also if the lock is held for `patience` seconds."""
    with changing(patience):
        _remove(entry.id)


def paused() -> bool:
    """Whether the whole queue is paused."""
    return (mark := paths.queue_dir() / _PAUSED).exists() and foreign(mark) is None


def pause(on: bool) -> None:
    """Pauses or resumes the whole queue. Raises OSError."""
    with changing():
        mark = paths.queue_dir() / _PAUSED
        if on:
            mark.touch(0o600)
        else:
            mark.unlink(missing_ok=True)


@contextlib.contextmanager
def alone() -> Iterator[bool]:
    """Whether this process may start queued runs: no other one does, or the file system has no locks."""
    global _ours
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(locked(paths.queue_dir()))
        except BlockingIOError:
            yield False
        else:
            _ours = True
            held.callback(_release)
            yield True


def _release() -> None:
    global _ours
    _ours = False


def _works(process: ProcessId | None) -> bool:
    """Whether a process works for the queue; the lock shows one in another container."""
    if process is None or process.here:
        return process is not None and process.alive()
    return not _ours and bool(is_locked(paths.queue_dir()))


def new_place() -> float:
    """The place after all others."""
    return max([time.time(), *(each.place + 1.0 for each in _read())])


@contextlib.contextmanager
def changing(patience: float = _PATIENCE) -> Iterator[None]:
    """Holds the lock of the queue; reentrant within a thread. Raises OSError."""
    refuse_changes(paths.queue_dir())
    if getattr(_thread, "changing", False):
        yield
        return
    make_folder(paths.queue_dir())
    with locked(paths.queue_dir() / ".lock", patience):
        _thread.changing = True
        try:
            yield
        finally:
            _thread.changing = False


def _read() -> list[Queued]:
    """The readable entries in order, including started ones."""
    files = (path for path in paths.queue_dir().glob("*.json") if not path.name.startswith("."))
    ours = (path for path in files if foreign(path) is None)
    readable = (entry for path in ours if (entry := Queued.read(path)) is not None and entry.id == path.stem)
    return sorted(readable, key=lambda entry: (entry.place, entry.id))


def _present(entry: Queued) -> Queued:
    """The current entry. Raises UserError if it has left the queue."""
    if (now := get(entry.id)) is None or now.run.path.exists():
        raise UserError(f"run {entry.id} is no longer in the queue", "'ppo-tui queue' lists its runs")
    return now


def _remove(id: str) -> None:
    _checked(id).unlink(missing_ok=True)
    _file(id).unlink(missing_ok=True)


def _place_at(at: int, entry: Queued, known: Sequence[Queued]) -> float:
    """The place that gives an entry the index `at`.

    Without room between its neighbors, later entries move towards the end, the last one first, which keeps the order at
    any time.
    """
    others = [each for each in known if each != entry]
    if at == len(others):
        return new_place()
    after = others[at].place
    before = others[at - 1].place if at else after - 2.0
    if before < (middle := (before + after) / 2) < after:
        return middle
    for each in reversed(known[known.index(others[at]) :]):
        dataclasses.replace(each, place=each.place + 1.0).write(_file(each.id))
    return before + 0.5


def _file(id: str) -> Path:
    return paths.queue_dir() / f"{id}.json"


def _checked(id: str) -> Path:
    return paths.queue_dir() / "checks" / f"{id}.json"
