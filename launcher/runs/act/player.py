"""A driver that trains nothing: it prints a log like the original run, but faster.

`python -m launcher.runs.act.player LOG SPEED EXIT_CODE`, which a supervisor spawns instead of veRL, so that a replay
takes the whole path of a live run. A console log goes to stdout, a metrics.jsonl to VERL_FILE_LOGGER_PATH.
"""

import os
import re
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from launcher.console.marks import STEP_HINT
from launcher.console.steps import read_step
from launcher.core.text import clean
from launcher.metrics.records import parse_record
from launcher.metrics.timing import seconds_of
from launcher.runs.watch.source import log_file, records

LONGEST = 30.0  # seconds of the log's time that one pause may stand for before the first step
_STAMP = re.compile(rb"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d")


def play(path: Path, speed: float, out: BinaryIO, *, file_logger: bool) -> None:
    """Writes the log to `out`, pausing before each step for as long as the step took, divided by `speed`."""
    for pause, line in _paced(path, file_logger):
        if pause > 0:
            out.flush()
            time.sleep(pause / speed)
        out.write(line + b"\n")
    out.flush()


def _paced(path: Path, file_logger: bool) -> Iterator[tuple[float, bytes]]:
    """Each line with the seconds that passed before it."""
    stamp: float | None = None
    started = False
    for line in records(path):
        data = _figures(line, file_logger)
        if data is not None:
            started = True
            yield seconds_of(data), line
            continue
        pause = 0.0
        if not started and (found := _STAMP.search(line, 0, 400)):
            now = datetime.strptime(found[0].decode(), "%Y-%m-%d %H:%M:%S").timestamp()
            pause, stamp = min(max(0.0, now - (stamp or now)), LONGEST), now
        yield pause, line


def _figures(line: bytes, file_logger: bool) -> dict[str, float] | None:
    if file_logger:
        record = parse_record(line)
        return record[1] if record else None
    if STEP_HINT not in line:
        return None
    step = read_step(clean(line.decode(errors="replace")))
    return step.data if step else None


def main() -> None:
    """Plays the log named on the command line and leaves with its exit code."""
    file = log_file(sys.argv[1])
    if file.file_logger:
        with Path(os.environ["VERL_FILE_LOGGER_PATH"]).open("ab", buffering=0) as out:
            play(file.path, float(sys.argv[2]), out, file_logger=True)
    else:
        play(file.path, float(sys.argv[2]), sys.stdout.buffer, file_logger=False)
    sys.exit(int(sys.argv[3]))


if __name__ == "__main__":
    main()
