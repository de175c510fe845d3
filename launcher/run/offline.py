"""Reading what has already happened: the steps, the judgement and the diagnosis of a SOURCE."""

import contextlib
import itertools
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from launcher.console.diagnose import diagnose
from launcher.console.diagnosis import Diagnosis
from launcher.console.reader import ConsoleReader, StepLine
from launcher.errors import UserError
from launcher.files import read_json
from launcher.format import SHORT_ID
from launcher.health.checklist import Checklist
from launcher.health.rows import Change
from launcher.metrics.records import StepRecord, parse_record
from launcher.run.directory import RunDir
from launcher.run.health import checklist_maker, earlier_steps, recorded_sizes
from launcher.run.monitor import Monitor
from launcher.run.player import seconds_of
from launcher.run.source import LogFile, chunks, records
from launcher.run.state import ALIVE, current

_STAMP = re.compile(rb"(20\d\d-\d\d-\d\d \d\d:\d\d:\d\d),\d{3}")
_MEMORY_SIZES = ("gpu_total_gb", "host_total_gb")


class LogClock:
    """When the steps of a finished log happened: its first time stamp, then the durations that it reports.

    An estimate: step lines carry no time. Without a stamp the log's last change is its end.
    """

    def __init__(self, console: Path | None, metrics: Path | None) -> None:
        path = console or metrics
        assert path is not None
        self.now = path.stat().st_mtime
        if console is not None and (stamp := _STAMP.search(next(chunks(console), b""))):
            with contextlib.suppress(ValueError):
                self.now = datetime.strptime(stamp[1].decode(), "%Y-%m-%d %H:%M:%S").timestamp()

    def __call__(self, record: StepRecord) -> float:
        """The time at which this step was done."""
        self.now += seconds_of(record.data)
        return self.now


def read_attempt(monitor: Monitor, console: Path | None, metrics: Path | None, clock: LogClock) -> None:
    """Feeds a whole attempt to a monitor."""
    alone = console is None or metrics is None
    for chunk in chunks(console) if console else ():
        monitor.feed_console(chunk, clock.now)
        if alone:
            monitor.settle(clock.now)
    logged = records(metrics) if metrics else iter(())
    while batch := list(itertools.islice(logged, 256)):
        monitor.feed_file(batch, clock.now)
        if alone:
            monitor.settle(clock.now)
    monitor.close(clock.now)


def steps(source: RunDir | LogFile) -> Iterator[tuple[int, StepRecord]]:
    """Every step of every attempt, with the attempt's number."""
    if isinstance(source, RunDir):
        for number in source.attempt_numbers():
            for line in records(source.attempt(number).steps):
                if (record := StepRecord.from_line(line)) is not None:
                    yield number, record
    elif source.file_logger:
        for line in records(source.path):
            if (found := parse_record(line)) is not None:
                yield 1, StepRecord(found[0], 0.0, None, found[1])
    else:
        reader = ConsoleReader()
        for chunk in chunks(source.path):
            yield from _steps(reader.feed(chunk))
        yield from _steps(reader.close())


def _steps(events: Iterable[object]) -> Iterator[tuple[int, StepRecord]]:
    for event in events:
        if isinstance(event, StepLine):
            yield 1, StepRecord(event.step, 0.0, event.offset, event.data)


class _Collector:
    """A sink that keeps the changes of health rules."""

    def __init__(self) -> None:
        self.changes: list[Change] = []

    def steps(self, records: list[StepRecord]) -> None:
        pass

    def phase(self, phase: str, step: int | None, t: float) -> None:
        pass

    def health(self, changes: Iterable[Change], t: float) -> None:
        self.changes.extend(changes)


def judge(source: RunDir | LogFile, config: Sequence[str]) -> tuple[Checklist, list[Change]]:
    """The checklist after the last step of a source, and every change on the way.

    `config` holds KEY=VALUE settings that beat the console's own dump of the configuration, and memory sizes
    that beat those of the run's machine.
    """
    pinned = dict(_setting(text) for text in config)
    sizes = {name: _size(name, pinned.pop(name)) for name in _MEMORY_SIZES if name in pinned}
    sink = _Collector()
    if isinstance(source, LogFile):
        console, metrics = (None, source.path) if source.file_logger else (source.path, None)
        clock = LogClock(console, metrics)
        monitor = Monitor(sink, checklist_maker({}, sizes), {}, file_logger=False, pinned=pinned, clock=clock)
        read_attempt(monitor, console, metrics, clock)
        return monitor.checklist, sink.changes
    info = source.read_info()
    make = checklist_maker(info, recorded_sizes(source) | sizes)
    checklist = make(pinned)
    for number in source.attempt_numbers():
        attempt = source.attempt(number)
        launch = read_json(attempt.launch)
        console, metrics = attempt.logs()
        monitor = Monitor(sink, make, launch.get("keys") or {}, file_logger=metrics is not None, pinned=pinned)
        monitor.history(earlier_steps(source, number, launch.get("resume_step")))
        if console or metrics:
            read_attempt(monitor, console, metrics, LogClock(console, metrics))
        checklist = monitor.checklist
        if ended := read_json(attempt.exit):
            checklist.ended(ended.get("code"))
    return checklist, sink.changes


def diagnosis(source: RunDir | LogFile) -> Diagnosis:
    """Why a source ended, or that it runs."""
    if isinstance(source, LogFile):
        return diagnose(() if source.file_logger else chunks(source.path))
    attempt, state = source.last_attempt(), current(source)
    if attempt is None:
        return diagnose(())
    if state["state"] == "imported":
        return diagnose(chunks(attempt.console))
    ended = read_json(attempt.exit)
    alive = state["state"] in ALIVE or bool(state.get("driver_alive"))  # its supervisor may be gone
    found = diagnose(
        chunks(attempt.console),
        exit_code=ended.get("code"),
        requested_by=ended.get("requested_by"),
        alive=alive,
        stalled_for=_age(attempt.console),
        steps_total=state.get("total"),
    )
    return found.of_run(source.id[:SHORT_ID])


def _age(path: Path) -> float | None:
    """Seconds since a log grew."""
    with contextlib.suppress(OSError):
        return max(0.0, time.time() - path.stat().st_mtime)
    return None


def _setting(text: str) -> tuple[str, Any]:
    from launcher.preset import hydra

    _, key, value = hydra.split(text)
    return key, hydra.parse(value)


def _size(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
        raise UserError(f"--config {name}={value}: a number of GiB above 0 is needed")
    return float(value)
