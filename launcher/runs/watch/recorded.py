"""Reading an attempt that is over."""

import contextlib
import itertools
import re
from datetime import datetime
from pathlib import Path

from launcher.console.reader import ConfigDump, ConsoleReader, StepLine
from launcher.metrics.records import StepRecord
from launcher.metrics.timing import seconds_of
from launcher.preset.resolved import Resolved, from_config
from launcher.runs.watch.monitor import Monitor
from launcher.runs.watch.source import chunks, records

_STAMP = re.compile(rb"(20\d\d-\d\d-\d\d \d\d:\d\d:\d\d),\d{3}")


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


def settings_of(console: Path) -> Resolved:
    """The preset that a log's own configuration comes to."""
    reader = ConsoleReader()
    for event in (event for chunk in chunks(console) for event in reader.feed(chunk)):
        if isinstance(event, ConfigDump):
            return from_config(event.keys, console.absolute().parent)
        if isinstance(event, StepLine):  # it is printed before the first one
            break
    return Resolved()


def read_attempt(monitor: Monitor, console: Path | None, metrics: Path | None, clock: LogClock) -> None:
    """Feeds a whole attempt to a monitor."""
    alone = console is None or metrics is None
    for chunk in chunks(console) if console else ():
        monitor.feed_console(chunk, clock.now)
        if alone:
            monitor.collect(clock.now)
    logged = records(metrics) if metrics else iter(())
    while batch := list(itertools.islice(logged, 256)):
        monitor.feed_file(batch, clock.now)
        if alone:
            monitor.collect(clock.now)
    monitor.close(clock.now)
