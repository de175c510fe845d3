"""Files of the supervisor, also on a full disk.

config.yaml limits the size of console.log, because a program may print the same error for days. gpu.jsonl gets one
sample per second at first and one per ten seconds after an hour, so its size is bounded. A checkpoint that does not fit
ends veRL and leaves no space to record the end: so space is reserved at the start and freed for that record.
"""

import contextlib
import errno
import math
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import orjson

from launcher import settings
from launcher.core import gap
from launcher.core.errors import UserError
from launcher.core.files import Appender, append_lines, write_atomic
from launcher.core.format import GIB, amount
from launcher.metrics.records import StepRecord
from launcher.record.events import EventLog, LevelChange, PhaseChange
from launcher.record.layout import AttemptDir
from launcher.record.machine import DiskSpace, MachineSample
from launcher.runs.judge.sink import Sink

_FULL_RATE = 3600.0  # seconds of one sample a second
_MOST = 4 << 20  # bytes; then every second sample of the older half is dropped
_ROOM = 1 << 17  # bytes; exit.json and state.json take a tenth of it
_LITTLE = GIB  # bytes of free disk space
_PAUSE = 1.0  # seconds between two tries
_GONE = 6  # looks in a row without the run's folder, after which it was removed


class OwnFolder:
    """The working directory of the supervisor: the folder of the run, even if it was renamed."""

    def __init__(self) -> None:
        self._missed = 0  # looks in a row that did not find it

    def gone(self) -> bool:
        """Whether the folder was removed, so that the run cannot be watched or stopped."""
        try:
            Path.cwd().stat()
            self._missed = 0
        except OSError as error:
            # others are those of a network disk that is away for a while
            self._missed += error.errno in (errno.ENOENT, errno.ESTALE)
        return self._missed > _GONE


class MachineLog:
    """Appends samples to gpu.jsonl."""

    def __init__(self, path: Path) -> None:
        self._path, self._started, self._last = path, time.monotonic(), -math.inf

    def due(self, every: float = 1.0) -> bool:
        """Whether the next sample is due: one in `every` seconds, fewer after an hour."""
        now = time.monotonic()  # the clock may be set
        return now - self._last >= (every if now - self._started < _FULL_RATE else max(every, 10.0))

    def add(self, sample: MachineSample) -> None:
        """Writes one sample; on a full disk the sample is lost."""
        self._last = time.monotonic()
        with contextlib.suppress(OSError):
            append_lines(self._path, [orjson.dumps(sample.to_json(), option=orjson.OPT_APPEND_NEWLINE)])
            if self._path.stat().st_size > _MOST:
                lines = self._path.read_bytes().splitlines(keepends=True)
                half = len(lines) // 2
                write_atomic(self._path, b"".join(lines[:half:2] + lines[half:]))


class ConsoleLimit:
    """Keeps an attempt's console within the size in config.yaml; `tell` gets the error once."""

    def __init__(self, console: Path, tell: Callable[[str], object]) -> None:
        self._console, self._tell = console, tell
        self._most: int | None = settings.CONSOLE_SIZE
        try:
            self._most = settings.max_console_size()
        except UserError as error:
            tell(f"{error}; console.log is kept to 1 GiB")

    def apply(self) -> None:
        """Removes the middle of a console that has grown too large."""
        try:
            if self._most is not None:
                gap.limit(self._console, self._most)
        except FileNotFoundError:  # removed meanwhile
            pass
        except OSError as error:
            self._most = None
            self._tell(f"console.log grows without limit: its middle cannot be deleted ({error.strerror or error})")


class LowDisk:
    """Detects a disk that will soon be full; again only after it had twice this limit free."""

    def __init__(self) -> None:
        self._low = False

    def note(self, disk: DiskSpace) -> str | None:
        """A warning for the events when little space is left."""
        was, self._low = self._low, disk.free < (2 * _LITTLE if self._low else _LITTLE)
        if was or not self._low:
            return None
        ends = "a full disk ends the driver, because its console is a file; 'ppo-tui resume' continues the run"
        return f"{amount(disk.free)} free in {disk.path}: {ends}"


class Reserve:
    """Disk space for writes that must succeed. `gone` returns whether the run's folder was removed."""

    def __init__(self, file: Path, gone: Callable[[], bool]) -> None:
        self._file, self._gone = file, gone
        with contextlib.suppress(OSError):
            file.write_bytes(os.urandom(_ROOM))  # no file system makes that smaller

    def retry(self, write: Callable[[], object]) -> None:
        """Frees the reserve and calls `write` until it raises no OSError."""
        while not self._gone():
            try:
                write()
                return
            except OSError:
                if not self.release():
                    time.sleep(_PAUSE)

    def release(self) -> bool:
        """Frees the reserve. Returns whether there was one."""
        try:
            self._file.unlink()
        except OSError:
            return False
        return True


class DiskSink(Sink):
    """Writes results into the run directory."""

    def __init__(
        self,
        attempt: AttemptDir,
        events: EventLog,
        on_change: Callable[[LevelChange, float], None] | None = None,
        *,
        patient: bool = False,
    ) -> None:
        """`on_change` gets every level change after it was written; `patient` as in `Appender`."""
        self._steps = Appender(attempt.steps, patient=patient)
        self._events, self._on_change = events, on_change
        self.flush = self._steps.flush

    def steps(self, records: list[StepRecord]) -> None:
        self._steps.add([record.to_line() for record in records])

    def phase(self, phase: str, step: int | None, t: float) -> None:
        self._events.add(PhaseChange(phase, step), t)

    def health(self, changes: Iterable[LevelChange], t: float) -> None:
        for change in changes:
            if change.notable:  # a rule that starts to judge is not an event
                self._events.add(change, t)
                if self._on_change is not None:
                    self._on_change(change, t)
