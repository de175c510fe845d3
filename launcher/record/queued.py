"""The queue: runs that wait for their turn, one file per run, `queue/ID.json`.

ID is the id that the run will have. An entry whose run exists has been started, even if the file is still there, so no
kill starts a run twice. `queue/checks/ID.json` is its preflight, which runs while it waits.
"""

import contextlib
import dataclasses
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from launcher.core import paths
from launcher.core.errors import UserError
from launcher.core.text import near_hint
from launcher.record.info import Origin
from launcher.record.json import RARE, Record
from launcher.record.layout import RunDir
from launcher.record.process import ProcessId, locked

_PAUSED = ".paused"  # stands in the folder while nothing of it is to be started


@dataclass(frozen=True)
class Queued(Record):
    """A run that waits for its turn on the machine `host`.

    `preset` is a snapshot with all settings applied, `settings` are those given with it, for display. `needs` is the
    number of GPUs, 0 on the CPU; `gpus` are the requested ones (CUDA_VISIBLE_DEVICES), any if empty. It waits for the
    run `after` to finish. Entries start in the order of `place`; `now`: even if its GPUs are in use. `skipped` is why
    it could not start, `starter` the process that starts it on the GPUs `given`. `note` is the future note of the run,
    `origin` the run and checkpoint that a fork begins with.
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

    @property
    def run(self) -> RunDir:
        """The run that it becomes."""
        return RunDir(paths.runs_dir() / self.id)

    @property
    def uses(self) -> str:
        """`CPU`, `2 GPUs`, `GPU 0,1`."""
        if self.gpus:
            return f"GPU {','.join(self.gpus)}"
        return f"{self.needs} GPU{'s' * (self.needs > 1)}" if self.needs else "CPU"

    @property
    def starting(self) -> bool:
        """Whether it is being started."""
        return self.starter is not None and self.starter.alive()

    @property
    def waits(self) -> bool:
        """Whether it will start as soon as possible."""
        return not self.paused and self.skipped is None

    def save(self) -> None:
        """Writes its file. Raises OSError."""
        paths.queue_dir().mkdir(parents=True, exist_ok=True, mode=0o700)
        self.write(_file(self.id))

    def remove(self) -> None:
        """Removes it from the queue."""
        _file(self.id).unlink(missing_ok=True)
        forget(self.id)


@dataclass(frozen=True)
class Checked(Record):
    """The preflight of a waiting run, which the process `checker` makes; `ended` is when it was done, 0 before.

    `tries` counts the processes that were started for it. `refused` is why the run would fail. `findings` are those
    that do not depend on the present load of the machine; `files` are the stamps of the files that were read, by
    `check.gate.stamps`.
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
        return not self.ended and self.checker is not None and self.checker.alive()

    def save(self, id: str) -> None:
        """Writes its file. Raises OSError."""
        (file := _checked(id)).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.write(file)


def checked(id: str) -> Checked:
    """The preflight of an entry; an empty record without one."""
    return Checked.read(_checked(id)) or Checked()


def forget(id: str) -> None:
    """Removes the result of the preflight, so that it is repeated."""
    _checked(id).unlink(missing_ok=True)


def entries() -> list[Queued]:
    """The waiting runs in their order; damaged files are left out.

    The file of a started entry is removed, so that it does not reappear when the run is deleted.
    """
    files = (path for path in paths.queue_dir().glob("*.json") if not path.name.startswith("."))
    readable = [entry for path in files if (entry := Queued.read(path)) is not None and entry.id == path.stem]
    for each in (started := [each for each in readable if each.run.path.exists()]):
        with contextlib.suppress(OSError):
            each.remove()
    return sorted((each for each in readable if each not in started), key=lambda each: (each.place, each.id))


def get(id: str) -> Queued | None:
    """The entry of this id; None if it was started or removed."""
    return Queued.read(_file(id))


def find(word: str) -> Queued:
    """Finds an entry by its id, the start of its id, or its name. Raises UserError."""
    known = entries()
    for matches in (
        [each for each in known if each.id == word],
        [each for each in known if word and each.id.startswith(word)],
        [each for each in known if each.name == word],
    ):
        if len(matches) == 1:
            return matches[0]
        if matches:
            raise UserError(f"'{word}' matches {len(matches)} runs of the queue", "use more of the id")
    listed = "'ppo-tui queue' lists its runs"
    raise UserError(f"no run '{word}' in the queue", near_hint(word, [each.id for each in known], listed))


def move(entry: Queued, distance: int) -> None:
    """Moves an entry by so many places towards the end; the others keep their order. Raises OSError."""
    before = entries()
    ids = [each.id for each in before]
    if entry.id not in ids:
        return
    at = ids.index(entry.id)
    after = [*before[:at], *before[at + 1 :]]
    after.insert(min(max(at + distance, 0), len(after)), before[at])
    for each, place in zip(after, [each.place for each in before], strict=True):
        if each.place != place:
            dataclasses.replace(each, place=place).save()


def change(entry: Queued, **values: Any) -> None:
    """Replaces fields of an entry, unless it was started or removed meanwhile. Raises OSError."""
    if (now := get(entry.id)) is not None:
        dataclasses.replace(now, **values).save()


def paused() -> bool:
    """Whether the whole queue is paused."""
    return (paths.queue_dir() / _PAUSED).exists()


def pause(on: bool) -> None:
    """Pauses or resumes the whole queue. Raises OSError."""
    mark = paths.queue_dir() / _PAUSED
    if on:
        paths.queue_dir().mkdir(parents=True, exist_ok=True, mode=0o700)
        mark.touch()
    else:
        mark.unlink(missing_ok=True)


@contextlib.contextmanager
def alone() -> Iterator[bool]:
    """Whether this process may start runs of the queue: no other one does so, or the file system has no locks."""
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(locked(paths.queue_dir()))
        except BlockingIOError:
            yield False
        else:
            yield True


def new_place() -> float:
    """The place after all others."""
    return max([time.time(), *(each.place + 1e-3 for each in entries())])


def _file(id: str) -> Path:
    return paths.queue_dir() / f"{id}.json"


def _checked(id: str) -> Path:
    return paths.queue_dir() / "checks" / f"{id}.json"
