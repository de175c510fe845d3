"""Follows a log of another program as the driver of a run: copies it while it grows, and detects its end.

A console and veRL's metrics.jsonl are copied byte for byte. For files with a row per step, and for trackers, each step
is written once as a line of a metrics.jsonl.
"""

import contextlib
import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator
from operator import eq
from pathlib import Path
from typing import TypeAlias

import psutil

from launcher.console.phases import ALL_STEPS
from launcher.core import clock
from launcher.core.errors import NoStepYet, UserError
from launcher.core.files import append_lines
from launcher.core.format import duration
from launcher.core.progress import Meter
from launcher.core.tail import records
from launcher.metrics.frameworks import Framework, described
from launcher.metrics.records import parse_record
from launcher.record.attempt import Followed
from launcher.record.info import RunInfo
from launcher.record.layout import AttemptDir, RunDir
from launcher.runs.supervise.growing_log import GrowingLog, Replaced
from launcher.runs.supervise.player import play
from launcher.runs.watch.log import Log, newest
from launcher.runs.watch.tracker_files import read

Turns: TypeAlias = Generator[bool, bool | None, None]
"""Yields whether a turn found something new; receives True for the last turn."""
_LOOK = 0.5  # seconds between two looks at the log
_SHARE = 10  # waiting time after rereading a log, as a multiple of the reading time
_QUIET = 10.0  # seconds without growth after which to look for its writers
_FORSAKEN = 86400.0  # seconds without growth after which a log without a known writer has ended
_DONE = 600.0  # seconds if the log has its last step
_REST = 2.0  # seconds in which a short log is read to its end after a stop
_FEW = 5  # steps at the start and at the end of the read part that identify a log of rows


class _Stopped(Exception):
    """The run was stopped, so that the remaining log is not read."""


class FileDriver:
    """The program that writes a log: it runs until training is complete, or no process has the log open."""

    id = None  # the program is not ours, and need not be one process
    away: str | None = None
    stopped_by: str | None = None

    def __init__(self, attempt: AttemptDir, info: RunInfo, followed: Followed, tell: Callable[[str], None]) -> None:
        self._path, self._kind, self._followed, self._tell = Path(followed.path), followed.kind, followed, tell
        self._framework, self._attempt = described(info.framework), attempt
        self._log = Log.of(self._path, self._kind, self._framework)
        self._target = attempt.console if self._kind == "console" else attempt.metrics
        self._over, self._wake, self._until = threading.Event(), threading.Event(), math.inf
        self.trouble: str | None = None
        self.grown = written(self._path)
        self._code: int | None = None
        self.complete = self.closed = False  # whether the log has the last step, and the final line of the training
        self.replaced = False
        # whether a program here was seen to hold it open; None: it is played
        self.written_here = None if followed.speed is not None else False
        threading.Thread(target=self._watch, name="log", daemon=True).start()

    def running(self) -> bool:
        """Whether the log may still grow, or is not completely copied."""
        return not self._over.is_set()

    def terminate(self) -> None:
        """Stops following the log; the program itself continues."""
        self._until = time.monotonic() + _REST
        self._wake.set()

    def kill(self) -> None:
        """Does nothing: the program is not ours."""

    def stop_orphan(self) -> None:
        """Stops following the log after the run's folder was removed."""
        self.terminate()

    def status(self) -> tuple[int | None, str | None]:
        """The exit code, which only trackers have."""
        return self._code, None

    def clear(self) -> list[str]:
        """Returns an empty list: it started no process."""
        return []

    def _watch(self) -> None:
        try:
            if self._followed.speed is not None:
                held = RunDir(self._attempt.path.parents[1]).waits
                play(self._now(), self._target, held, self._followed, self._wake.wait)
                self.grown = clock.now()
            else:
                self._follow()
        except (OSError, UserError) as error:
            self.trouble = f"cannot read {self._path}: {error}"
        except _Stopped:  # the log is long
            pass
        except Replaced:
            self.replaced = True
            self._tell("replaced by another log, which is followed as a separate run")
        self._over.set()

    def _follow(self) -> None:
        copy = self._copies() if self._kind in ("console", "metrics") else self._translates()
        grew, said = clock.now(), set[float]()
        self.written_here = any(holders(self._path))
        while True:
            begun = time.monotonic()
            if next(copy):
                grew, self.grown = clock.now(), written(self._path)
            pause = max(_LOOK, _SHARE * (time.monotonic() - begun))
            quiet = clock.now() - grew
            if self._ended(quiet, said) or self._wake.wait(pause if quiet < _QUIET else max(pause, _LOOK * _SHARE)):
                break
        copy.send(True)

    def _ended(self, quiet: float, said: set[float]) -> bool:
        """Whether the log no longer grows, after `quiet` seconds without growth; `said`: limits already noted."""
        if self._code is not None:
            self._tell(f"the tracker recorded the end of the run, with exit code {self._code}")
            return True
        if quiet < _QUIET:
            self.written_here = self.written_here or (quiet < _LOOK and any(holders(self._path)))
            return False
        seen, now = self.written_here, any(holders(self._path))
        quiet = quiet if now else max(quiet, clock.now() - self.grown)
        limit = _QUIET if self.closed or (seen and not now) else _DONE if self.complete else _FORSAKEN
        self.written_here = seen or now
        if quiet >= limit and (self.closed or not now):
            self._tell(f"the log has ended: no output for {duration(quiet)}")
            return True
        if limit not in said and not self.written_here:
            said.add(limit)
            why = ALL_STEPS if self.complete else "no program on this machine has the log open"
            self._tell(f"{why}; following ends after {duration(limit)} without growth")
        return False

    def _copies(self) -> Turns:
        """Appends the new text of the log at each turn; yields whether there was any."""
        last = False
        source = GrowingLog(self._path, self._target, lambda: self._goes_on(last))
        while True:
            grew = False
            for fresh in source.fresh():
                with self._target.open("ab") as file:
                    file.write(fresh)
                grew = True
                if self._wake.is_set():
                    break
            last = bool((yield grew))

    def _goes_on(self, last: bool) -> bool | None:
        """Whether the current log continues the steps of the copied one; None: it has no step yet.

        If it has no step by the `last` turn, it continues an incomplete training.
        """
        first = None
        with contextlib.suppress(UserError):  # without a step
            log = newest(str(self._path), self._names())
            if (log.kind, log.title) != (self._kind, self._log.title):
                return False
            first = next(log.steps(), None)
        if first is None:
            return (last and not self.complete) or None
        before = next(iter(deque(self._log.copied(self._attempt).steps(), 1)), None)
        return before is not None and first.step > before.step

    def _translates(self) -> Turns:
        """Appends the new steps of a changed log at each turn; yields whether there were any.

        The last step may get more metrics, so it waits until the log is quiet. A rewritten log starts from its
        beginning.
        """
        known: object = None
        before = list(records(self._target)) if self._target.exists() else []
        done, last = [*map(hash, before)], _step(before[-1]) if before else -1
        file, changed, whole = _inode(self._path), 0.0, False
        while True:
            seen = [(each, found.st_ino, found.st_size, found.st_mtime_ns) for each, found in _status(self._path)]
            now = clock.now()
            if seen != known:
                known, changed = seen, now
                look = True
            else:
                look = whole or 0 < changed < now - _QUIET
                whole, changed = look, 0.0 if look else changed
            lines: list[bytes] = []
            with contextlib.suppress(NoStepYet, FileNotFoundError):  # being written
                lines = list(self._now().lines(Meter(self._go_on, 0), whole=whole)) if look else []
            found, place = [*map(hash, lines)], _inode(self._path)
            if not _same(done, found):
                if place != file and _step(lines[0]) <= last:
                    raise Replaced
                done = []
            file = place if lines else file
            fresh = lines[len(done) :]
            if fresh:
                append_lines(self._target, [line + b"\n" for line in fresh])
                last = _step(fresh[-1])
            done = found + done[len(found) :]
            whole = bool((yield bool(fresh)))

    def _now(self) -> Log:
        """The log; rereads the files of a tracker."""
        if self._kind == "tracker":
            self._log = read(self._path, self._names(), self._go_on)[-1]  # it has no step during a replacement
            self._code = self._log.exit_code
        return self._log

    def _go_on(self, *_: object) -> None:
        if time.monotonic() > self._until:
            raise _Stopped

    def _names(self) -> Framework | None:
        return self._framework if self._framework is not None and not self._framework.repository else None


def _step(line: bytes) -> int:
    record = parse_record(line)
    return record[0] if record is not None else -1


def _same(done: list[int], found: list[int]) -> bool:
    """Whether earlier steps, by their hashes, are still first and last; late metrics may change single ones."""
    common = min(len(done), len(found))
    parts = (slice(_FEW), slice(max(0, common - _FEW), common))
    return not common or all(any(map(eq, done[part], found[part])) for part in parts)


def _inode(path: Path) -> tuple[int, int] | None:
    """Device and inode of a log, or of the records in a wandb folder; None without a file."""
    found = next((status for _, status in _status(next(path.glob("*.wandb"), path))), None)
    return (found.st_dev, found.st_ino) if found else None


def holders(path: Path) -> Iterator[int]:
    """The processes that write to a file, or to a file of a folder."""
    wanted = {str(each.resolve()) for each in _files(path)}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.pid != os.getpid() and any(
                file.path in wanted and getattr(file, "mode", "r") != "r" for file in process.open_files()
            ):
                yield process.pid


def written(path: Path) -> float:
    """The last change of a file, or of the newest file of a folder."""
    return max((status.st_mtime for _, status in _status(path)), default=time.time())


def _status(path: Path) -> Iterator[tuple[Path, os.stat_result]]:
    for file in _files(path):
        with contextlib.suppress(FileNotFoundError):  # a sync replaces it
            yield file, file.stat()


def _files(path: Path) -> list[Path]:
    return [path] if path.is_file() else [each for each in path.glob("**/*") if each.is_file()] if path.is_dir() else []
