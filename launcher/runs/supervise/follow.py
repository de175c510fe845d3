"""A log that another program writes, as the driver of a run: it is copied while it grows, and its end is noticed.

A console and veRL's metrics.jsonl are copied byte for byte. Of files with a row per step, and of trackers, each step is
written once as a line of a metrics.jsonl.
"""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TypeAlias

import orjson
import psutil

from launcher.core.errors import UserError
from launcher.core.files import append_lines
from launcher.core.format import duration
from launcher.core.tail import Tail
from launcher.metrics.frameworks import Framework, described
from launcher.metrics.records import jsonable
from launcher.record.attempt import Followed
from launcher.record.info import RunInfo
from launcher.record.layout import AttemptDir
from launcher.runs.watch.foreign import file_lines
from launcher.runs.watch.source import chunks, records
from launcher.runs.watch.tracker_files import read

Turns: TypeAlias = Generator[bool, bool | None, None]
"""Whether each turn found something new; True is sent for the last turn."""
_LOOK = 0.5  # seconds between two looks at the log
_SHARE = 10  # a log that is read anew is left alone for so many times as long as that took
_QUIET = 10.0  # seconds without growth after which its writers are looked for
_FORSAKEN = 86400.0  # seconds without growth after which a log that nobody was seen to hold open has ended
_DONE = 600.0  # the same where the last step is in it


class FileDriver:
    """The program that writes a log: it runs until nobody holds the log open any more."""

    id = None  # the program is not ours, and need not be one process
    away: str | None = None
    stopped_by: str | None = None

    def __init__(self, attempt: AttemptDir, info: RunInfo, followed: Followed, tell: Callable[[str], None]) -> None:
        self._path, self._kind, self._tell = Path(followed.path), followed.kind, tell
        self._framework = described(info.framework)
        self._target = attempt.console if self._kind == "console" else attempt.metrics
        self._over, self._wake = threading.Event(), threading.Event()
        self.trouble: str | None = None
        self.grown = written(self._path)
        self._code: int | None = None
        self.complete = False  # whether the last step is in it
        threading.Thread(target=self._watch, name="log", daemon=True).start()

    def running(self) -> bool:
        """Whether the log may still grow, or was not copied completely."""
        return not self._over.is_set()

    def terminate(self) -> None:
        """Stops following the log: the program itself is not touched."""
        self._wake.set()

    def kill(self) -> None:
        """Does nothing: the program is not ours."""

    def stop_orphan(self) -> None:
        """Stops following the log: the folder of the run was removed."""
        self._wake.set()

    def status(self) -> tuple[int | None, str | None]:
        """The exit code, which only a tracker has."""
        return self._code, None

    def clear(self) -> list[str]:
        """Ends nothing, as it started no process; returns an empty list."""
        return []

    def _watch(self) -> None:
        copy = self._copies() if self._kind in ("console", "metrics") else self._translates()
        grew, held, said = time.monotonic(), any(holders(self._path)), False
        try:
            while True:
                begun = time.monotonic()
                if next(copy):
                    grew, self.grown = time.monotonic(), written(self._path)
                quiet = time.monotonic() - grew
                pause = max(_LOOK, _SHARE * (time.monotonic() - begun))
                if quiet >= _QUIET:
                    now, limit = any(holders(self._path)), _DONE if self.complete else _FORSAKEN
                    quiet = quiet if now else max(quiet, time.time() - self.grown)
                    if (held and not now) or quiet >= limit:
                        self._tell(f"the log has ended: nothing was added for {duration(quiet)}")
                        break
                    if not (held or now or said):
                        said, without = True, f"{duration(limit)} without growth"
                        self._tell(f"no program here has the log open; the following ends after {without}")
                    held, pause = held or now, max(pause, _QUIET / 2)
                elif not held and grew > begun:
                    held = any(holders(self._path))
                if self._wake.wait(pause):
                    break
            copy.send(True)
        except (OSError, UserError) as error:
            self.trouble = f"cannot read {self._path}: {error}"
        self._over.set()

    def _copies(self) -> Turns:
        """Appends the new bytes of the log at each turn; yields whether there were any."""
        source = Tail(self._path, self._target.stat().st_size if self._target.exists() else 0)
        while True:
            grew = False
            while fresh := source.read():
                self._require_same(not source.restarts)
                with self._target.open("ab") as file:
                    file.write(fresh)
                grew = True
            yield grew

    def _require_same(self, same: bool) -> None:
        if not same:
            action = f"'ppo-tui attach {self._path}' follows it from its beginning"
            raise UserError("it was cut or replaced while it was followed", action)

    def _translates(self) -> Turns:
        """Appends the new steps of the log at each turn, when it has changed; yields whether there were any.

        The last step may get more metrics, so it waits until the log is quiet.
        """
        known: object = None
        written = sum(1 for _ in records(self._target)) if self._target.exists() else 0
        changed, whole = 0.0, False
        while True:
            status = [(each, each.stat()) for each in _files(self._path)]
            seen = [(each, found.st_size, found.st_mtime_ns) for each, found in status]
            now = time.monotonic()
            if seen != known:
                known, changed = seen, now
                look = True
            else:
                look = whole or 0 < changed < now - _QUIET
                whole, changed = look, 0.0 if look else changed
            steps = list(self._lines(whole)) if look else []
            self._require_same(not look or len(steps) + 1 >= written)  # the last one waits again
            fresh = steps[written:]
            if fresh:
                append_lines(self._target, [line + b"\n" for line in fresh])
            written += len(fresh)
            whole = bool((yield bool(fresh)))

    def _lines(self, whole: bool) -> Iterator[bytes]:
        """The complete steps; all of them if `whole`."""
        if self._kind == "rows":
            assert self._framework is not None
            yield from file_lines(chunks(self._path), self._framework, whole=whole)
            return
        found = read(self._path, self._names())[-1]
        self._code = found.exit_code
        steps = sorted(found.steps)
        for step in steps if whole else steps[:-1]:
            yield orjson.dumps({"step": step, "data": jsonable(found.steps[step].data)})

    def _names(self) -> Framework | None:
        return self._framework if self._framework is not None and not self._framework.repository else None


def holders(path: Path) -> Iterator[int]:
    """The processes that have a file, or one of a folder, open for writing."""
    wanted = {str(each.resolve()) for each in _files(path)}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.pid != os.getpid() and any(
                file.path in wanted and getattr(file, "mode", "r") != "r" for file in process.open_files()
            ):
                yield process.pid


def written(path: Path) -> float:
    """When a file, or the newest one of a folder, was written."""
    return max((each.stat().st_mtime for each in _files(path)), default=time.time())


def _files(path: Path) -> list[Path]:
    return [path] if path.is_file() else [each for each in path.glob("**/*") if each.is_file()] if path.is_dir() else []
