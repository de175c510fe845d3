"""Plays a log faster than the original run, so that a replay takes the same path as a live run."""

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

from launcher.console.reader import ConsoleReader, StepLine
from launcher.core.tail import records
from launcher.metrics.records import parse_record
from launcher.metrics.timing import seconds_of
from launcher.record.attempt import Followed
from launcher.runs.watch.log import Log

LONGEST = 30.0  # seconds of the log's time that one pause may stand for before the first step
_LOOKS = 200  # for a key, in 20 seconds
_STAMP = re.compile(rb"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d")


def play(log: Log, target: Path, held: Path, how: Followed, wait: Callable[[float], bool]) -> None:
    """Appends the lines that `target` lacks, with the log's delays divided by the speed.

    `wait` waits the given seconds; returns whether to end now. A key removes the file `held`.
    """
    played = target.stat().st_size if target.exists() else 0
    with target.open("ab") as out:
        for pause, line, step in _paced(log):
            if (played := played - len(line) - 1) >= 0:
                continue
            if pause > 0:
                out.flush()
                if wait(pause / (how.speed or 1.0)):
                    return
            out.write(line + b"\n")
            if step in how.waits:
                out.flush()
                held.touch()
                for _ in range(_LOOKS):
                    if not held.exists() or wait(0.1):
                        break
                held.unlink(missing_ok=True)


def _paced(log: Log) -> Iterator[tuple[float, bytes, int | None]]:
    """The delay before each line in seconds, the line, and its step."""
    if log.kind != "console":
        for line in log.lines():
            record = parse_record(line)
            yield (seconds_of(record[1]), line, record[0]) if record else (0.0, line, None)
        return
    reader, stamp, started = ConsoleReader(log.framework, only_steps=True), 0.0, False
    for line in records(log.path):
        found = next((event for event in reader.feed(line + b"\n") if isinstance(event, StepLine)), None)
        pause = seconds_of(found.data) if found else 0.0
        started = started or pause > 0
        if not started and (stamped := _STAMP.search(line, 0, 400)):
            now = datetime.strptime(stamped[0].decode(), "%Y-%m-%d %H:%M:%S").timestamp()
            pause, stamp = min(max(0.0, now - (stamp or now)), LONGEST), now
        yield pause, line, found.step if found else None
